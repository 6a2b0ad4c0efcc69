<?php

/**
 * Repetitions, settle pause and idle baseline: from the environment, else from the protocol.yaml of
 * the suites that are run (`python -m eeio.pts.protocol` reads it).
 */
class eeio_power_protocol
{
	const LIMIT_S = 30;
	/** The exit code of our commands for rejected input. */
	const REFUSED = 2;

	private $told = array();
	private $why;

	/** `$folders`: of the suites; null means profiles outside of a suite. */
	public function __construct($preset, $folders)
	{
		$arguments = array($preset);
		foreach($folders as $folder)
		{
			$arguments[] = $folder === null ? '' : $folder;
		}
		list($code, $output, $words) = eeio_power_python::run('eeio.pts.protocol', $arguments, self::LIMIT_S);
		if($code === self::REFUSED)
		{
			throw new eeio_power_refused('EEIO_PRESET=' . $preset . ': ' . $words);
		}
		$body = $code === 0 ? json_decode($output, true) : null;
		$this->told = is_array($body) ? $body : array();
		$this->why = $words !== '' ? $words : 'is ' . eeio_power_python::path() . ' Python 3.11 or newer?';
	}

	/** False if Python could not be run: then only the environment counts. */
	public function is_known()
	{
		return !empty($this->told);
	}

	/** Trials of each experiment in random order. */
	public function repetitions()
	{
		return (int)(pts_env::read('FORCE_TIMES_TO_RUN') ?: $this->value('repetitions', 'FORCE_TIMES_TO_RUN'));
	}

	/** Removes the tests that the preset leaves out; returns their number. */
	public function leave_out($manager)
	{
		$left_out = isset($this->told['left_out']) ? $this->told['left_out'] : array();
		$queue = array();
		foreach($manager->get_tests_to_run() as $test)
		{
			$words = preg_split('/\s+/', trim($test->get_arguments()), -1, PREG_SPLIT_NO_EMPTY);
			sort($words, SORT_STRING);
			array_unshift($words, basename($test->test_profile->get_identifier()));
			if(!in_array(implode(' ', $words), $left_out, true))
			{
				$queue[] = $test;
			}
		}
		$removed = $manager->get_test_count() - count($queue);
		if($removed > 0)
		{
			eeio_power_order::property('tests_to_run')->setValue($manager, $queue);
		}
		return $removed;
	}

	/** PTS's pause between tests, in full seconds: no longer than the suite's, if known. */
	public function pause_s($configured_s)
	{
		return isset($this->told['settle_s']) ? min($configured_s, (int)ceil($this->settle_s())) : $configured_s;
	}

	/** Seconds before each trial in random order. */
	public function settle_s()
	{
		$given = eeio_power_settings::seconds('EEIO_SETTLE_S');
		return $given !== null ? $given : (float)$this->value('settle_s', 'EEIO_SETTLE_S');
	}

	/** Seconds of the idle baseline. */
	public function idle_s()
	{
		$given = eeio_power_settings::seconds('EEIO_IDLE_S');
		return $given !== null ? $given : (float)$this->value('idle_s', 'EEIO_IDLE_S');
	}

	/** Bytes that each trial moves, as text; null where the presets of the profiles say it. */
	public function work()
	{
		if(getenv('EEIO_WORK') !== false)
		{
			return getenv('EEIO_WORK');
		}
		if(isset($this->told['reasons']['work_bytes']))
		{
			throw new eeio_power_refused('work: ' . $this->told['reasons']['work_bytes'] . '; run them one by one, or give EEIO_WORK');
		}
		return isset($this->told['work_bytes']) ? (string)$this->told['work_bytes'] : null;
	}

	private function value($key, $setting)
	{
		if(isset($this->told[$key]))
		{
			return $this->told[$key];
		}
		$why = isset($this->told['reasons'][$key]) ? $this->told['reasons'][$key] : 'the protocol of the suite is not known (' . $this->why . ')';
		throw new eeio_power_refused($key . ': ' . $why . '; give ' . $setting);
	}
}
