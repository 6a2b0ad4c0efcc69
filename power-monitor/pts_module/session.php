<?php

/** The Python process that samples, and the pipe to it. */
class eeio_power_session
{
	const START_LIMIT_S = 30;

	/** name, spec, kind, domains and period_s of each open meter. */
	public $meters;

	private $process;
	private $pipes;
	private $errors;
	private $rest = '';
	/** Answers that have not come yet: one line a request, in order. */
	private $owed = 0;

	/**
	 * The session of a run, with the meters that EEIO_METER names; its samples go into `$folder`. Null
	 * where the Python package is not there and no meter was asked for. What there is, is told.
	 */
	public static function open($folder)
	{
		$specs = eeio_power_settings::meters();
		$session = null;
		try
		{
			$samples = $folder . '/eeio-power-' . gmdate('Ymd-His') . '.csv.gz';
			$session = new eeio_power_session($specs, $samples, eeio_power_settings::preset() === 'quick');
		}
		catch(RuntimeException $error)
		{
			$is_there = strpos($error->getMessage(), 'No module named') === false;
			if($is_there || ($specs && $specs !== array('none')))
			{
				if(is_dir($folder) && count(scandir($folder)) === 2)
				{
					rmdir($folder);
				}
				throw new eeio_power_refused($error->getMessage());
			}
			eeio_power_ending::tell('no power: ' . $error->getMessage());
			return null;
		}
		if(empty($session->meters) && $specs !== array('none'))
		{
			eeio_power_ending::tell('no power: no measured power source was found; EEIO_METER names one, or EEIO_METER=modelled for an estimate');
		}
		foreach($session->meters as $meter)
		{
			eeio_power_ending::tell($meter['words']);
		}
		return $session;
	}

	/** Throws RuntimeException with a line that says what is wrong. */
	public function __construct($specs, $samples, $allow_estimates)
	{
		$arguments = array('--samples', $samples);
		foreach($specs as $spec)
		{
			array_push($arguments, '--meter', $spec);
		}
		if($allow_estimates)
		{
			$arguments[] = '--allow-estimates';
		}
		$this->errors = tmpfile() ?: array('file', '/dev/null', 'w');
		$wiring = array(array('pipe', 'r'), array('pipe', 'w'), $this->errors);
		$this->process = eeio_power_python::start('eeio.pts.session', $arguments, $wiring, $this->pipes, dirname($samples));
		if(!is_resource($this->process))
		{
			throw new RuntimeException(eeio_power_python::path() . ' cannot be started: EEIO_PYTHON names Python 3.11 or newer');
		}
		$greeting = $this->receive(self::START_LIMIT_S);
		if(isset($greeting['error']))
		{
			$this->close();
			throw new RuntimeException($greeting['error']);
		}
		$this->meters = $greeting['meters'];
	}

	/** The answer to a request, as an array. Throws RuntimeException when there is none in time. */
	public function ask($request, $extra_s)
	{
		if(@fwrite($this->pipes[0], json_encode($request) . "\n") === false)
		{
			throw new RuntimeException('the power session has ended');
		}
		$this->owed++;
		do
		{
			// What comes first is the answer to a request that was given up.
			$answer = $this->receive(self::START_LIMIT_S + $extra_s);
			$this->owed--;
		}
		while($this->owed > 0);
		return $answer;
	}

	/** The same; an answer with `error` where there is none. */
	public function try_to_ask($request, $extra_s)
	{
		try
		{
			return $this->ask($request, $extra_s);
		}
		catch(RuntimeException $error)
		{
			return array('error' => $error->getMessage());
		}
	}

	public function close()
	{
		if(!is_resource($this->process))
		{
			return;
		}
		@fwrite($this->pipes[0], json_encode(array('do' => 'quit')) . "\n");
		fclose($this->pipes[0]);
		fclose($this->pipes[1]);
		proc_close($this->process);
	}

	private function receive($limit_s)
	{
		$deadline = hrtime(true) / 1e9 + $limit_s;
		while(($end = strpos($this->rest, "\n")) === false)
		{
			$read = array($this->pipes[1]);
			$none = null;
			$left = $deadline - hrtime(true) / 1e9;
			if($left <= 0)
			{
				throw new RuntimeException('the power session does not answer');
			}
			if(!@stream_select($read, $none, $none, (int)$left, (int)(fmod($left, 1) * 1e6)))
			{
				continue;
			}
			$piece = fread($this->pipes[1], 65536);
			if($piece === '' || $piece === false)
			{
				$words = eeio_power_python::last_line($this->errors);
				throw new RuntimeException('the power session has ended: ' . ($words !== '' ? $words : 'is ' . eeio_power_python::path() . ' Python 3.11 or newer?'));
			}
			$this->rest .= $piece;
		}
		$line = substr($this->rest, 0, $end);
		$this->rest = substr($this->rest, $end + 1);
		$answer = json_decode($line, true);
		return is_array($answer) ? $answer : array('error' => 'the power session says: ' . substr($line, 0, 200));
	}
}
