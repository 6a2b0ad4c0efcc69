<?php

/** The end of a run: missing results are reported, saved ones survive, the exit status is right. */
class eeio_power_ending
{
	const FAILED = 1;
	const REFUSED = 2;
	const INCOMPLETE = 3;

	/** A run has begun, or was rejected: PTS's messages are not needed to explain why. */
	public $began = false;
	public $exit_code = 0;

	/** Results missing from the result file, one line each. */
	private $missing = array();
	/** The last complete result file, until the end. */
	private $good_copy = null;
	/** Other modules fork this process: their children must not use our inherited resources. */
	private $owner = null;

	public static function tell($line)
	{
		echo self::line($line);
	}

	public static function say($line)
	{
		fwrite(STDERR, self::line($line));
	}

	/** A line for the terminal. Names and reasons come from outside: their control characters are shown, not sent. */
	private static function line($line)
	{
		return 'eeio_power: ' . addcslashes($line, "\0..\37\177") . PHP_EOL;
	}

	/** Messages with the same key are printed once. */
	public function miss($lines)
	{
		foreach($lines as $key => $line)
		{
			is_int($key) ? $this->missing[] = $line : $this->missing[$key] = $line;
		}
	}

	public function refuse($line)
	{
		self::say($line);
		$this->began = true;
		$this->exit_code = self::REFUSED;
		exit(self::REFUSED);
	}

	public function own()
	{
		$this->began = true;
		$this->owner = getmypid();
	}

	public function is_of_a_child()
	{
		return $this->owner !== null && $this->owner !== getmypid();
	}

	/** Ctrl-C and SIGTERM: `$stop` ends the tool and writes the present results. */
	public function catch_signals($stop)
	{
		if(!function_exists('pcntl_async_signals'))
		{
			return;
		}
		pcntl_async_signals(true);
		$handler = function($number) use ($stop)
		{
			if($this->is_of_a_child())
			{
				pcntl_signal($number, SIG_DFL);
				posix_kill(getmypid(), $number);
				return;
			}
			pcntl_signal(SIGINT, SIG_IGN);
			pcntl_signal(SIGTERM, SIG_IGN);
			$stop($number);
			$this->exit_code = 128 + $number;
			exit($this->exit_code);
		};
		// Without restarting: PTS waits in a read for the tool's output, which must return.
		pcntl_signal(SIGINT, $handler, false);
		pcntl_signal(SIGTERM, $handler, false);
	}

	/** PTS truncates the file before it writes it: on a full disk the last complete one must survive. */
	public function keep_good_copy($folder, $result_file)
	{
		$xml = $result_file->get_xml();
		$new = $folder . '/eeio-composite.new';
		if(@file_put_contents($new, $xml) === strlen($xml) && @rename($new, $folder . '/eeio-composite.last'))
		{
			$this->good_copy = $folder . '/eeio-composite.last';
		}
		else
		{
			@unlink($new);
			$this->missing['disk'] = $folder . ': no space left; results after the last one that was saved';
		}
	}

	/** The last messages, and the exit status. */
	public function end()
	{
		$this->check_saved();
		$command = isset($_SERVER['argv'][1]) ? $_SERVER['argv'][1] : '';
		if(!$this->began && $this->exit_code === 0 && in_array($command, array('benchmark', 'run', 'test')))
		{
			self::say('nothing was run: what PTS says above tells why');
			$this->exit_code = self::FAILED;
		}
		$error = error_get_last();
		if($error !== null && in_array($error['type'], array(E_ERROR, E_PARSE, E_CORE_ERROR, E_COMPILE_ERROR)))
		{
			$this->exit_code = self::FAILED;
		}
		if(!empty($this->missing))
		{
			foreach($this->missing as $line)
			{
				self::say('missing: ' . $line);
			}
			$this->exit_code = $this->exit_code ?: self::INCOMPLETE;
		}
		if($this->exit_code !== 0)
		{
			// Functions registered now are called last, so PTS has put everything away by then.
			$code = $this->exit_code;
			register_shutdown_function(function() use ($code) { self::leave($code); });
		}
	}

	private function check_saved()
	{
		if($this->good_copy === null || !is_file($this->good_copy))
		{
			return;
		}
		$path = dirname($this->good_copy) . '/composite.xml';
		$errors = libxml_use_internal_errors(true);
		$whole = is_file($path) && filesize($path) > 0 && simplexml_load_file($path, 'SimpleXMLElement', LIBXML_NONET) !== false;
		libxml_use_internal_errors($errors);
		$whole ? @unlink($this->good_copy) : @rename($this->good_copy, $path);
		if(!$whole)
		{
			$this->missing['disk'] = $path . ': could not be written whole (disk full?); it holds what was saved before';
		}
	}

	/**
	 * PTS's launcher forgets what PHP ended with. It does become what PHP asks it to start
	 * afterwards (a web server, as a rule), and that may end as we like.
	 */
	private static function leave($code)
	{
		$folder = getenv('PTS_EXT_LAUNCH_SCRIPT_DIR');
		if($folder && is_dir($folder) && !is_file($folder . '/web-server-launcher'))
		{
			file_put_contents($folder . '/web-server-launcher', "#!/bin/sh\nrm -f \"\$0\"\nexit " . $code . "\n");
		}
		exit($code);
	}
}
