<?php

/** The trials of the test that runs: their windows, by the session, and the values they gave. */
class eeio_power_trials
{
	/** A window shorter than its meters' slowest period is waited for; longer than this is a fault. */
	const ANSWER_LIMIT_S = 90;

	/** The test; null between two. */
	public $request = null;
	/** The results it gave, one a line of the tool that PTS parses. */
	public $results = array();
	/** What is known of each trial, in their order. */
	public $trials = array();
	/** Of all tests so far. */
	public $done = 0;

	private $session;
	/** Where each trial's output goes; null where the user wants it elsewhere. */
	private $output;
	private $counts = array();
	/** Of the trial that runs: when it began (monotonic s), and its process. */
	private $start_s = null;
	private $pid = null;

	/** `$session` is null where there is none. */
	public function __construct($session, $output)
	{
		$this->session = $session;
		$this->output = $output;
	}

	public function begin_test($request)
	{
		$this->request = $request;
		$this->trials = $this->counts = $this->results = array();
		$this->start_s = $this->pid = null;
	}

	public function end_test()
	{
		$this->request = null;
		$this->trials = $this->results = array();
	}

	/** The tool is about to be called. */
	public function begin($request)
	{
		$this->end();
		if($this->session !== null)
		{
			$what = array('do' => 'begin');
			if($this->keeps_output($request))
			{
				$what += array('output' => $this->output, 'arguments' => (string)$request->get_arguments());
			}
			$this->session->try_to_ask($what, 0);
		}
		$this->start_s = hrtime(true) / 1e9;
	}

	public function watch($process)
	{
		$status = proc_get_status($process);
		$this->pid = $status['pid'];
		if($this->session !== null)
		{
			$this->session->try_to_ask(array('do' => 'watch', 'pid' => $this->pid, 'start_s' => $this->start_s), 0);
		}
	}

	/** Takes the window of the trial that ended. PTS tells no end: the session saw it. */
	public function end()
	{
		if($this->start_s === null)
		{
			return;
		}
		$trial = array('order' => $this->done++, 'start_s' => $this->start_s);
		if($this->session !== null && $this->pid !== null)
		{
			$what = array('do' => 'end', 'order' => $trial['order']);
			if($this->keeps_output($this->request))
			{
				$profile = $this->request->test_profile;
				$what['keep'] = sprintf('%05d', $trial['order']);
				// Reads the trial's output: the package `eeio`, where it is there.
				$what['tell'] = array(eeio_power_python::path(), '-m', 'eeio.pts.trial', $profile->get_identifier(), eeio_power_settings::preset(), $profile->get_install_dir());
			}
			// The session keeps the readings: it makes the entries of them.
			$trial = array_merge($trial, $this->session->try_to_ask($what, self::ANSWER_LIMIT_S));
		}
		$this->trials[] = $trial;
		$this->start_s = $this->pid = null;
	}

	/** How many values each result had after this trial: a trial that failed gave none. */
	public function count_results($request)
	{
		$counts = array();
		foreach(is_array($request->generated_result_buffers) ? $request->generated_result_buffers : array() as $buffer)
		{
			$counts[spl_object_id($buffer)] = count($buffer->active->results);
		}
		$this->counts[] = $counts;
	}

	/** trial => value, of a result of the test that just ended. */
	public function values_by_trial($result)
	{
		$values = array_values($result->active->results);
		$of_trial = array();
		$taken = 0;
		for($k = 0; $k < count($this->trials); $k++)
		{
			$until = count($values);
			if($k < count($this->trials) - 1)
			{
				$id = spl_object_id($result);
				$until = isset($this->counts[$k][$id]) ? $this->counts[$k][$id] : 0;
			}
			if($until > $taken)
			{
				$of_trial[$k] = $values[$until - 1];
				$taken = $until;
			}
		}
		return $of_trial;
	}

	/** A tool left running would disturb whatever comes next. */
	public function kill()
	{
		if($this->pid !== null)
		{
			self::end_process($this->pid);
		}
	}

	private function keeps_output($request)
	{
		return $this->output !== null && eeio_power_experiment::is_ours($request);
	}

	/** The wrapper and what it started. */
	private static function end_process($pid)
	{
		foreach(preg_split('/\s+/', (string)@file_get_contents('/proc/' . $pid . '/task/' . $pid . '/children'), -1, PREG_SPLIT_NO_EMPTY) as $child)
		{
			self::end_process((int)$child);
		}
		posix_kill($pid, SIGTERM);
	}
}
