<?php

/** A test with its arguments: its trials in their order, and the values they gave. */
class eeio_power_experiment
{
	public $request;
	/** What the session said of each trial, and `failed`. */
	public $trials = array();
	/** hash => `result`, as PTS has it, and `values` by trial. */
	public $results = array();

	public function __construct($request)
	{
		$this->request = $request;
	}

	public static function key($request)
	{
		return $request->test_profile->get_identifier() . ' ' . $request->get_arguments();
	}

	public static function is_ours($request)
	{
		// local/eeio-..., or an account of OpenBenchmarking in place of `local`
		return preg_match('{^[^/]+/eeio-}', $request->test_profile->get_identifier()) === 1;
	}

	public function name()
	{
		return trim(self::key($this->request));
	}

	/** Profiles of ours that name no level describe the machine (lmbench), not its I/O. */
	public function describes_machine()
	{
		return self::is_ours($this->request) && strpos(' ' . $this->request->get_arguments(), ' level=') === false;
	}

	/** Takes over the trials of a test that has ended; gives a line for each that lacks something. */
	public function add($test)
	{
		$offset = count($this->trials);
		$has_value = $missing = array();
		foreach($test->results as $result)
		{
			$hash = $result->get_comparison_hash(true, false);
			if(!isset($this->results[$hash]))
			{
				$this->results[$hash] = array('result' => $result, 'values' => array());
			}
			foreach($test->values_by_trial($result) as $k => $value)
			{
				$this->results[$hash]['values'][$offset + $k] = $value;
				$has_value[$k] = true;
			}
		}
		foreach($test->trials as $k => $trial)
		{
			$trial['failed'] = !isset($has_value[$k]);
			$this->trials[] = $trial;
			if($trial['failed'])
			{
				$missing[] = $this->name() . ': trial ' . ($offset + $k + 1) . ' failed, it has no values';
			}
			else if(isset($trial['error']))
			{
				$missing[] = $this->name() . ': trial ' . ($offset + $k + 1) . ' has no energy: ' . $trial['error'];
			}
		}
		if(empty($test->trials))
		{
			$missing[] = $this->name() . ': did not start';
		}
		return $missing;
	}

	/** Those of the results with this scale that tell of the drive. */
	public function results_in($scale)
	{
		return array_filter($this->results, function($entry) use ($scale)
		{
			// What IOzone's children add up to is no bandwidth of the disk: no MB/J comes from it.
			$is_children = substr($entry['result']->get_arguments_description(), -9) === ' Children';
			return $entry['result']->test_profile->get_result_scale() === $scale && !$is_children;
		});
	}

	/** The trials that did not fail, by their numbers. */
	public function taken()
	{
		return array_filter($this->trials, function($trial) { return !$trial['failed']; });
	}

	/** What Python makes entries of: these results, by their hashes, and all trials. */
	public function to_ask($results)
	{
		$of = array();
		foreach($results as $hash => $entry)
		{
			$values = array();
			foreach($entry['values'] as $k => $value)
			{
				$values[] = array($k, $value);
			}
			$profile = $entry['result']->test_profile;
			$of[] = array('hash' => $hash, 'title' => $profile->get_title(), 'description' => $entry['result']->get_arguments_description(), 'scale' => $profile->get_result_scale(), 'values' => $values);
		}
		$trials = array_map(function($trial) { return array_diff_key($trial, array('told' => 0)); }, $this->trials);
		return array('do' => 'entries', 'name' => $this->name(), 'arguments' => $this->request->get_arguments(), 'description' => $this->request->get_arguments_description(), 'results' => $of, 'trials' => $trials);
	}
}
