<?php

/** The Python that samples and that knows suites and tools: which one, and what it finds. */
class eeio_power_python
{
	/** EEIO_PYTHON, the checkout's own environment, or the system's. */
	public static function path()
	{
		$own = dirname(__DIR__, 2) . '/.venv/bin/python';
		return getenv('EEIO_PYTHON') ?: (is_executable($own) ? $own : 'python3');
	}

	/** Starts `python -m MODULE ARGUMENTS` without a shell; false if that cannot be done. */
	public static function start($module, $arguments, $wiring, &$pipes, $folder = null)
	{
		// The packages of a checkout; an installed copy has them where Python looks by itself.
		$packages = array(dirname(__DIR__), dirname(__DIR__, 2) . '/result-parsers', dirname(__DIR__, 2) . '/src');
		// Nothing is imported from the current folder, where others may have put files.
		$environment = array('PYTHONSAFEPATH' => '1', 'PYTHONPATH' => implode(':', array_filter($packages, 'is_dir'))) + getenv();
		return @proc_open(array_merge(array(self::path(), '-m', $module), $arguments), $wiring, $pipes, $folder, $environment);
	}

	/**
	 * The exit code of a short command, what it printed, and the last line it said on stderr.
	 * One that cannot be started or does not end in time has the exit code null.
	 */
	public static function run($module, $arguments, $limit_s)
	{
		$errors = tmpfile() ?: array('file', '/dev/null', 'w');
		$process = self::start($module, $arguments, array(array('file', '/dev/null', 'r'), array('pipe', 'w'), $errors), $pipes);
		if(!is_resource($process))
		{
			return array(null, '', self::path() . ' cannot be started: EEIO_PYTHON names Python 3.11 or newer');
		}
		$output = '';
		$deadline = hrtime(true) / 1e9 + $limit_s;
		while(!feof($pipes[1]))
		{
			$left = $deadline - hrtime(true) / 1e9;
			if($left <= 0)
			{
				proc_terminate($process, 9);
				fclose($pipes[1]);
				proc_close($process);
				return array(null, '', self::path() . ' -m ' . $module . ' has not ended within ' . $limit_s . ' s');
			}
			$read = array($pipes[1]);
			$none = null;
			if(@stream_select($read, $none, $none, (int)$left, (int)(fmod($left, 1) * 1e6)))
			{
				$output .= fread($pipes[1], 65536);
			}
		}
		fclose($pipes[1]);
		$code = proc_close($process);
		return array($code, $output, self::last_line($errors));
	}

	/** What a process said last in the file it wrote its errors to; empty if nothing. */
	public static function last_line($file)
	{
		if(!is_resource($file))
		{
			return '';
		}
		$size = fstat($file)['size'];
		fseek($file, max(0, $size - 4096));
		$lines = preg_split('/\R/', trim((string)stream_get_contents($file)));
		return substr(end($lines), 0, 400);
	}
}
