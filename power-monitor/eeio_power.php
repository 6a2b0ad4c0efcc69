<?php

/**
 * A module of the Phoronix Test Suite: power, energy and MB/J of every trial, beside its bandwidth.
 *
 * The sampling and all arithmetic on power are eeio_power/session.py's, one process a run, which
 * this module starts and asks. Here stand only the hooks, and what is written into the result file.
 *
 * Settings, from the environment: EEIO_METER (specs, separated by blanks; unset: every measured
 * source), EEIO_PROTOCOL (native or random), EEIO_SEED, EEIO_PRESET, and EEIO_IDLE_S, EEIO_SETTLE_S
 * in seconds, EEIO_PYTHON. docs/pts.md tells them all.
 */
class eeio_power extends pts_module_interface
{
	const module_name = 'eeio power';
	const module_version = '1.0.0';
	const module_description = 'Adds power (W), energy (J) and energy efficiency (MB/J) of every single trial to the results.';
	const module_author = 'The eeio authors';

	const EXIT_FAILED = 1;
	const EXIT_REFUSED = 2;
	const EXIT_INCOMPLETE = 3;

	/** A window shorter than its meters' slowest period is waited for; longer than this is a fault. */
	const ANSWER_LIMIT_S = 90;

	/** Repetitions, settle pause and idle baseline of eeio-suite's presets (its protocol.yaml). */
	const PROTOCOLS = array(
		'quick' => array('repetitions' => 3, 'settle_s' => 0, 'idle_s' => 5),
		'standard' => array('repetitions' => 5, 'settle_s' => 5, 'idle_s' => 60),
		'paper' => array('repetitions' => 10, 'settle_s' => 20, 'idle_s' => 60),
	);

	private static $session = null;
	private static $manager = null;
	/** Other modules fork this process: what their children inherit of ours they must not use. */
	private static $owner = null;
	private static $random = false;
	private static $settle_s = 0;
	private static $began = false;
	private static $exit_code = 0;
	/** What is missing from the result file, a line each. */
	private static $missing = array();
	/** Why there is no power at all; null while there is. */
	private static $no_power = null;

	/** Of the test that runs: its request, its trials, the results counted after each trial. */
	private static $request = null;
	private static $trials = array();
	private static $counts = array();
	private static $results = array();
	/** Where each trial's output goes; null where the user wants it elsewhere. */
	private static $output = null;
	/** Of the trial that runs: when it began (monotonic s), and its process. */
	private static $start_s = null;
	private static $pid = null;

	/** Everything so far, by test and arguments: trials in their order, and the results they gave. */
	private static $experiments = array();
	private static $trials_done = 0;
	/** EEIO_KEEP_FILES was set by us, so the files are ours to remove at the end. */
	private static $keeps_files = false;
	private static $good_copy = null;

	public static function module_environment_variables()
	{
		return array('EEIO_METER', 'EEIO_PROTOCOL');
	}

	public static function module_info()
	{
		return 'Power, energy and MB/J of every trial; see docs/pts.md of eeio.';
	}

	// ---------------------------------------------------------------- before the first trial

	public static function __run_manager_setup(&$manager)
	{
		self::$random = self::setting('EEIO_PROTOCOL', 'native') === 'random';
		if(!self::$random && self::setting('EEIO_PROTOCOL', 'native') !== 'native')
		{
			self::refuse('EEIO_PROTOCOL=' . getenv('EEIO_PROTOCOL') . ': give native or random');
		}
		$preset = self::setting('EEIO_PRESET', 'standard');
		if(!isset(self::PROTOCOLS[$preset]))
		{
			self::refuse('EEIO_PRESET=' . $preset . ': give one of ' . implode(', ', array_keys(self::PROTOCOLS)));
		}
		self::$settle_s = self::seconds('EEIO_SETTLE_S', self::PROTOCOLS[$preset]['settle_s']);
		self::seconds('EEIO_IDLE_S', 0);
		self::check_suites();
		if(!self::asks_somebody())
		{
			self::answer_questions($manager, $preset);
		}
		foreach(array('EEIO_PRESET' => $preset, 'EEIO_PROTOCOL' => self::$random ? 'random' : 'native') as $name => $value)
		{
			pts_module_manager::var_store_add($name, $value);
		}
		if(self::$random)
		{
			pts_module_manager::var_store_add('EEIO_SEED', self::seed());
		}
	}

	public static function __pre_run_process($manager)
	{
		self::$manager = $manager;
		self::$began = true;
		self::$owner = getmypid();
		self::catch_signals();
		$folder = PTS_SAVE_RESULTS_PATH . $manager->get_file_name();
		self::start_session($folder);
		self::measure_idle($manager);
		if(self::$random)
		{
			self::shuffle_all($manager);
		}
	}

	/** A suite that names a missing profile, or one whose install failed, would run without it. */
	private static function check_suites()
	{
		foreach(array_slice(isset($_SERVER['argv']) ? $_SERVER['argv'] : array(), 2) as $word)
		{
			$object = pts_types::identifier_to_object($word);
			if(!($object instanceof pts_test_suite) && !($object instanceof pts_test_profile))
			{
				continue;
			}
			$profiles = $object instanceof pts_test_suite ? self::profiles_named_by($word, $object) : array($object->get_identifier());
			foreach($profiles as $identifier)
			{
				$profile = new pts_test_profile($identifier);
				if($profile->get_title() == null)
				{
					self::refuse($word . ' names the test profile ' . $identifier . ', which is not there: link it (scripts/setup --pts) or take it out of the suite');
				}
				if(!$profile->test_installation || !$profile->test_installation->is_installed())
				{
					self::refuse($identifier . ' of ' . $word . ' is not installed: `phoronix-test-suite install ' . $identifier . '` says why');
				}
			}
		}
	}

	/** PTS leaves what it does not find out of its own list, so the definition is read. */
	private static function profiles_named_by($word, $suite)
	{
		$names = array();
		foreach(array($word, $suite->get_identifier(), 'local/' . $word) as $candidate)
		{
			$path = PTS_TEST_SUITE_PATH . $candidate . '/suite-definition.xml';
			if(is_file($path) && ($xml = simplexml_load_file($path, 'SimpleXMLElement', LIBXML_NONET)) !== false)
			{
				foreach($xml->Execute as $execute)
				{
					$test = (string)$execute->Test;
					if(strpos($test, 'local/') === 0)
					{
						$names[] = $test;
					}
				}
				break;
			}
		}
		return array_unique($names);
	}

	private static function asks_somebody()
	{
		return function_exists('stream_isatty') && defined('STDIN') && stream_isatty(STDIN);
	}

	/** Without a terminal PTS asks for ever: whatever it would ask is answered here, or refused. */
	private static function answer_questions($manager, $preset)
	{
		foreach(array(
			'TEST_RESULTS_NAME' => 'eeio-' . $preset . '-' . gmdate('Ymd-His'),
			'TEST_RESULTS_IDENTIFIER' => 'eeio ' . $preset,
			'TEST_RESULTS_DESCRIPTION' => 'Bandwidth, power, energy and energy efficiency of the I/O stack (preset ' . $preset . ').',
		) as $name => $value)
		{
			if(!pts_env::read($name))
			{
				pts_env::set($name, $value);
			}
		}
		$name = pts_env::read('TEST_RESULTS_NAME');
		if(pts_types::is_test_or_suite($name) || strlen($name) > 126)
		{
			self::refuse('TEST_RESULTS_NAME=' . $name . ': is a test or suite, or longer than 126 letters; give another name');
		}
		$path = PTS_SAVE_RESULTS_PATH . pts_test_run_manager::clean_save_name($name) . '/composite.xml';
		if(is_file($path))
		{
			$identifier = pts_test_run_manager::clean_results_identifier(pts_env::read('TEST_RESULTS_IDENTIFIER'));
			$before = new pts_result_file($path);
			if(in_array($identifier, $before->get_system_identifiers()))
			{
				self::refuse($path . ' has results of "' . $identifier . '" already: give another TEST_RESULTS_NAME or TEST_RESULTS_IDENTIFIER');
			}
		}
		// The question whether to upload has no default; uploading is `upload-result`'s, on purpose.
		self::property($manager, 'allow_sharing_of_results')->setValue($manager, false);
	}

	private static function start_session($folder)
	{
		$specs = preg_split('/\s+/', self::setting('EEIO_METER', ''), -1, PREG_SPLIT_NO_EMPTY);
		if(!is_file(__DIR__ . '/eeio_power/session.py'))
		{
			$why = 'the Python package eeio_power does not lie beside ' . __FILE__;
			$specs && $specs !== array('none') ? self::refuse('EEIO_METER=' . getenv('EEIO_METER') . ': ' . $why) : self::go_without($why);
			return;
		}
		$samples = $folder . '/eeio-power-' . gmdate('Ymd-His') . '.csv.gz';
		try
		{
			$session = new eeio_power_session($specs, $samples, self::setting('EEIO_PRESET', 'standard') === 'quick');
		}
		catch(RuntimeException $error)
		{
			self::drop_empty($folder);
			self::refuse($error->getMessage());
		}
		// Without a meter it still says which phases a trial had, and what state the drive is in.
		self::$session = $session;
		if(getenv('EEIO_OUTPUT_DIR') === false)
		{
			self::$output = $folder . '/eeio-trials/now';
			self::export('EEIO_OUTPUT_DIR', self::$output);
		}
		if($specs === array('none'))
		{
			self::$no_power = 'EEIO_METER=none';
		}
		else if(empty($session->meters))
		{
			self::go_without('no measured power source was found; EEIO_METER names one, or EEIO_METER=modelled for an estimate');
		}
		foreach($session->meters as $meter)
		{
			self::tell($meter['name'] . ' (' . self::kind_words($meter['kind']) . ')');
		}
	}

	private static function go_without($why)
	{
		self::$no_power = $why;
		self::tell('no power: ' . $why);
	}

	private static function tell($line)
	{
		echo self::line($line);
	}

	/** A line for the terminal. Names and reasons come from outside: their control characters are shown, not sent. */
	private static function line($line)
	{
		return 'eeio_power: ' . addcslashes($line, "\0..\37\177") . PHP_EOL;
	}

	/** What the machine takes when nothing runs: a result of its own. */
	private static function measure_idle($manager)
	{
		$preset = self::setting('EEIO_PRESET', 'standard');
		$seconds = self::seconds('EEIO_IDLE_S', self::PROTOCOLS[$preset]['idle_s']);
		if(self::$session === null || empty(self::$session->meters) || $seconds == 0 || $manager->get_test_count() == 0)
		{
			return;
		}
		self::tell('measuring idle power for ' . $seconds . ' s');
		$window = self::ask(array('do' => 'idle', 'seconds' => $seconds), $seconds);
		foreach(isset($window['readings']) ? $window['readings'] : array() as $reading)
		{
			if(!$reading['valid'])
			{
				self::$missing[] = 'idle baseline of ' . $reading['meter'] . ' ' . $reading['domain'] . ': ' . implode('; ', $reading['reasons']);
				continue;
			}
			$entry = self::derive($manager->get_test_to_run(0), 'W', 'LIB');
			$entry->test_profile->set_test_title(self::title('eeio: idle baseline', $reading));
			$entry->test_profile->set_version('');
			$entry->set_used_arguments('idle');
			$entry->set_used_arguments_description(self::words('Idle Power', $reading));
			self::set_item($manager->result_file, $entry, array($reading['power_w']), array('eeio' => array('idle' => $window)));
		}
	}

	// ---------------------------------------------------------------- the protocol PTS lacks

	/** All repetitions of all experiments in one random order, which the seed repeats. */
	private static function shuffle_all($manager)
	{
		$preset = self::setting('EEIO_PRESET', 'standard');
		$repetitions = (int)(pts_env::read('FORCE_TIMES_TO_RUN') ?: self::PROTOCOLS[$preset]['repetitions']);
		$queue = array();
		foreach($manager->get_tests_to_run() as $test)
		{
			for($k = 0; $k < $repetitions; $k++)
			{
				$clone = clone $test;
				$clone->test_profile->set_override_values(array());
				$queue[] = $clone;
			}
		}
		mt_srand(self::seed());
		for($k = count($queue) - 1; $k > 0; $k--)
		{
			$other = mt_rand(0, $k);
			list($queue[$k], $queue[$other]) = array($queue[$other], $queue[$k]);
		}
		self::property($manager, 'tests_to_run')->setValue($manager, $queue);
		self::property($manager, 'do_dynamic_run_count')->setValue($manager, false);
		pts_env::set('FORCE_TIMES_TO_RUN', 1);
		// PTS runs a test of the same name again only inside its own loop.
		pts_env::set('TOTAL_LOOP_COUNT', 1);
		$manager->sleep_time_between_tests = 0;
		if(getenv('EEIO_KEEP_FILES') === false)
		{
			// Experiments take turns: each would write its files anew.
			self::$keeps_files = true;
			self::export('EEIO_KEEP_FILES', '1');
		}
		self::tell(count($queue) . ' trials in one random order, seed ' . self::seed());
	}

	private static function seed()
	{
		static $seed = null;
		if($seed === null)
		{
			$text = self::setting('EEIO_SEED', (string)random_int(0, 2147483647));
			if(!preg_match('/^[0-9]{1,9}$|^[12][0-9]{9}$/', $text))
			{
				self::refuse('EEIO_SEED=' . $text . ': give a whole number from 0 to 2147483647');
			}
			$seed = (int)$text;
		}
		return $seed;
	}

	// ---------------------------------------------------------------- trials

	public static function __pre_test_run($request)
	{
		self::$request = $request;
		self::$trials = self::$counts = self::$results = array();
		self::$start_s = self::$pid = null;
		if(self::$random)
		{
			self::export('EEIO_RUN_SEED', (string)mt_rand(1, 2147483646));
			// What the test before left in the page cache is not this one's to write back.
			self::$session !== null ? self::ask(array('do' => 'sync'), 600) : shell_exec('sync');
			usleep((int)(self::$settle_s * 1e6));
		}
	}

	public static function __calling_test_script($request)
	{
		self::end_trial();
		if(self::$session !== null)
		{
			$what = array('do' => 'begin');
			if(self::$output !== null && self::is_ours($request))
			{
				$what += array('output' => self::$output, 'arguments' => (string)$request->get_arguments());
			}
			self::ask($what, 0);
		}
		self::$start_s = hrtime(true) / 1e9;
	}

	public static function __test_running($process)
	{
		$status = proc_get_status($process);
		self::$pid = $status['pid'];
		if(self::$session !== null)
		{
			self::ask(array('do' => 'watch', 'pid' => self::$pid, 'start_s' => self::$start_s), 0);
		}
	}

	public static function __interim_test_run($request)
	{
		self::end_trial();
		self::count_results($request);
	}

	public static function __post_test_run_success($result)
	{
		self::end_trial();
		self::$results[] = $result;
	}

	/** Takes the window of the trial that ended. PTS tells no end: the session saw it. */
	private static function end_trial()
	{
		if(self::$start_s === null)
		{
			return;
		}
		$trial = array('order' => self::$trials_done++, 'start_s' => self::$start_s);
		if(self::$session !== null && self::$pid !== null)
		{
			$what = array('do' => 'end');
			if(self::$output !== null && self::is_ours(self::$request))
			{
				$profile = self::$request->test_profile;
				$what['keep'] = sprintf('%05d', $trial['order']);
				$what['tell'] = array_merge(self::$session->tell_command(), array($profile->get_identifier(), self::setting('EEIO_PRESET', 'standard'), $profile->get_install_dir()));
			}
			$trial = array_merge($trial, self::ask($what, self::ANSWER_LIMIT_S));
		}
		self::$trials[] = $trial;
		self::$start_s = self::$pid = null;
	}

	/** How many values each result had after this trial: a trial that failed gave none. */
	private static function count_results($request)
	{
		$counts = array();
		foreach(is_array($request->generated_result_buffers) ? $request->generated_result_buffers : array() as $buffer)
		{
			$counts[spl_object_id($buffer)] = count($buffer->active->results);
		}
		self::$counts[] = $counts;
	}

	/** trial => value, of the test that just ended. */
	private static function values_by_trial($result)
	{
		$values = array_values($result->active->results);
		$of_trial = array();
		$taken = 0;
		for($k = 0; $k < count(self::$trials); $k++)
		{
			$until = count($values);
			if($k < count(self::$trials) - 1)
			{
				$id = spl_object_id($result);
				$until = isset(self::$counts[$k][$id]) ? self::$counts[$k][$id] : 0;
			}
			if($until > $taken)
			{
				$of_trial[$k] = $values[$until - 1];
				$taken = $until;
			}
		}
		return $of_trial;
	}

	// ---------------------------------------------------------------- into the result file

	/** After each test, whatever became of it: what the file lacks is said, the rest is in it. */
	public static function __post_test_run_process($result_file)
	{
		self::end_trial();
		if(self::$request === null)
		{
			return;
		}
		$key = self::$request->test_profile->get_identifier() . ' ' . self::$request->get_arguments();
		if(!isset(self::$experiments[$key]))
		{
			self::$experiments[$key] = array('trials' => array(), 'results' => array(), 'request' => self::$request);
		}
		$experiment = &self::$experiments[$key];
		$offset = count($experiment['trials']);
		$has_value = array();
		foreach(self::$results as $result)
		{
			$hash = $result->get_comparison_hash(true, false);
			if(!isset($experiment['results'][$hash]))
			{
				$experiment['results'][$hash] = array('result' => $result, 'values' => array());
			}
			foreach(self::values_by_trial($result) as $k => $value)
			{
				$experiment['results'][$hash]['values'][$offset + $k] = $value;
				$has_value[$k] = true;
			}
		}
		foreach(self::$trials as $k => $trial)
		{
			$trial['failed'] = !isset($has_value[$k]);
			$experiment['trials'][] = $trial;
			if($trial['failed'])
			{
				self::$missing[] = self::name_of(self::$request) . ': trial ' . ($offset + $k + 1) . ' failed, it has no values';
			}
			else if(isset($trial['error']))
			{
				self::$missing[] = self::name_of(self::$request) . ': trial ' . ($offset + $k + 1) . ' has no energy: ' . $trial['error'];
			}
		}
		if(empty(self::$trials))
		{
			self::$missing[] = self::name_of(self::$request) . ': did not start';
		}
		self::settle_failed_entry($result_file, $experiment);
		self::publish($result_file, $experiment);
		unset($experiment);
		self::$request = null;
		self::$trials = self::$results = array();
		self::keep_good_copy($result_file);
	}

	/**
	 * PTS keeps an empty entry for a test that failed. It goes when other trials of the same
	 * experiment have values; else it is made anew, for PTS crashes when it overwrites it itself.
	 */
	private static function settle_failed_entry($result_file, $experiment)
	{
		$hash = $experiment['request']->get_comparison_hash(true, false);
		$object = $result_file->get_result_object_by_hash($hash);
		if(!$object || !$object->test_result_buffer)
		{
			return;
		}
		$identifier = self::$manager->get_results_identifier();
		$buffer = new pts_test_result_buffer();
		$failed = null;
		foreach($object->test_result_buffer->get_buffer_items() ?: array() as $item)
		{
			if($item->get_result_identifier() === $identifier && (string)$item->get_result_value() === '')
			{
				$failed = $item;
			}
			else
			{
				$buffer->add_buffer_item($item);
			}
		}
		if($failed === null)
		{
			return;
		}
		if(empty($experiment['results']))
		{
			$buffer->add_test_result($identifier, '', '', $failed->get_result_json());
		}
		$object->test_result_buffer = $buffer;
		if(count($buffer->get_buffer_items() ?: array()) === 0)
		{
			$result_file->remove_result_object_by_id($hash, false);
		}
	}

	private static function publish($result_file, $experiment)
	{
		$bandwidths = $rates = array();
		$first_hash = key($experiment['results']);
		foreach($experiment['results'] as $hash => $entry)
		{
			self::publish_values($result_file, $hash, $entry, $experiment['trials'], $hash === $first_hash);
			$scale = $entry['result']->test_profile->get_result_scale();
			// What IOzone's children add up to is no bandwidth of the disk: no MB/J comes from it.
			if($scale === 'MB/s' && substr($entry['result']->get_arguments_description(), -9) !== ' Children')
			{
				$bandwidths[$hash] = $entry;
			}
			else if($scale === 'Files/s')
			{
				$rates[$hash] = $entry;
			}
		}
		// Files that are created have power and energy, and no MB/J.
		$told = $bandwidths ?: $rates;
		if(empty($told) || self::describes_machine($experiment['request']))
		{
			return;
		}
		$taken = array_filter($experiment['trials'], function($trial) { return !$trial['failed']; });
		$failed = count($experiment['trials']) - count($taken);
		if($failed > 0)
		{
			self::annotate($result_file, key($told), $failed . ' of ' . count($experiment['trials']) . ' trials failed and have no values');
		}
		foreach(self::sources($experiment['trials']) as $source)
		{
			$readings = self::readings_of($source, $taken);
			$valid = array_filter($readings, function($reading) { return $reading['valid']; });
			$first = reset($told);
			if(count($valid) < count($taken))
			{
				$bad = array_diff_key($readings, $valid);
				$why = empty($bad) ? 'no reading' : implode('; ', reset($bad)['reasons']);
				$line = (count($taken) - count($valid)) . ' of ' . count($taken) . ' trials have no energy of ' . $source['meter'] . ' ' . $source['domain'] . ': ' . $why;
				self::annotate($result_file, key($told), $line);
				self::$missing[md5(self::name_of($experiment['request']) . $source['meter'] . $source['domain'])] = self::name_of($experiment['request']) . ': ' . $line;
			}
			if(empty($valid))
			{
				continue;
			}
			$times = implode(':', array_map(function($k) use ($taken) { return round($taken[$k]['duration_s'], 3); }, array_keys($valid)));
			foreach(self::doubts_of($valid) as $doubt)
			{
				self::annotate($result_file, key($told), 'doubtful: ' . $doubt);
			}
			$base = array('quantity' => '', 'meter' => $source['meter'], 'domain' => $source['domain'], 'kind' => $source['kind']);
			foreach(array('power_w' => array('Power', 'W'), 'energy_j' => array('Energy', 'J')) as $field => $words)
			{
				$derived = self::derive($first['result'], $words[1], 'LIB');
				$derived->test_profile->set_test_title(self::title($first['result']->test_profile->get_title(), $source));
				$derived->set_used_arguments_description($experiment['request']->get_arguments_description() . ' - ' . self::words($words[0], $source));
				$derived->set_used_arguments($experiment['request']->get_arguments());
				$derived->set_parent_hash(key($told));
				$json = array('test-run-times' => $times, 'eeio' => array_merge($base, array('quantity' => $field)));
				if($field === 'energy_j')
				{
					$json['eeio']['trials'] = self::with_reading($experiment['trials'], $source);
				}
				self::set_item($result_file, $derived, array_column($valid, $field), $json);
			}
			foreach($bandwidths as $hash => $entry)
			{
				$values = array();
				foreach($valid as $k => $reading)
				{
					if(isset($entry['values'][$k]) && $reading['power_w'] > 0)
					{
						$values[] = $entry['values'][$k] / $reading['power_w'];
					}
				}
				if(empty($values))
				{
					continue;
				}
				$derived = self::derive($entry['result'], 'MB/J', 'HIB');
				$derived->test_profile->set_test_title(self::title($entry['result']->test_profile->get_title(), $source));
				$derived->set_used_arguments_description($entry['result']->get_arguments_description() . ' - ' . self::words('Energy Efficiency', $source) . (self::leave_drives_out($valid) ? ', without drives' : ''));
				$derived->set_parent_hash($hash);
				self::set_item($result_file, $derived, $values, array('test-run-times' => $times, 'eeio' => array_merge($base, array('quantity' => 'efficiency_mb_per_j'))));
			}
		}
	}

	/** The tool's own values again: one entry for all trials of the random order, and their numbers. */
	private static function publish_values($result_file, $hash, $entry, $trials, $is_first)
	{
		$object = $result_file->get_result_object_by_hash($hash) ?: $result_file->get_result($hash);
		if(!$object || empty($entry['values']))
		{
			return;
		}
		$identifier = self::$manager->get_results_identifier();
		$json = array();
		foreach($object->test_result_buffer->get_buffer_items() as $item)
		{
			if($item->get_result_identifier() === $identifier && is_array($item->get_result_json()))
			{
				$json = $item->get_result_json();
			}
		}
		$times = array();
		foreach(array_keys($entry['values']) as $k)
		{
			if(isset($trials[$k]['duration_s']))
			{
				$times[] = round($trials[$k]['duration_s'], 3);
			}
		}
		if(self::$random && count($times) === count($entry['values']))
		{
			$json['test-run-times'] = implode(':', $times);
		}
		$json['eeio'] = array('trial-of-value' => array_keys($entry['values']), 'trials' => count($trials));
		$told = array_map(function($trial) { return isset($trial['told']) ? $trial['told'] : null; }, $trials);
		if($is_first && array_filter($told))
		{
			$json['eeio']['told'] = $told;
		}
		self::set_values($object, $identifier, array_values($entry['values']), $json);
	}

	private static function set_item($result_file, $entry, $values, $json)
	{
		$entry->test_result_buffer = new pts_test_result_buffer();
		$stored = $result_file->get_result_object_by_hash($entry->get_comparison_hash(true, false));
		$stored = $stored ?: $result_file->add_result_return_object($entry);
		self::set_values($stored, self::$manager->get_results_identifier(), array_map(function($value) { return self::number($value); }, $values), $json);
	}

	/** One item for this system, in place of those it has; other systems' items stay. */
	private static function set_values($object, $identifier, $values, $json)
	{
		$buffer = new pts_test_result_buffer();
		foreach($object->test_result_buffer->get_buffer_items() ?: array() as $item)
		{
			if($item->get_result_identifier() !== $identifier)
			{
				$buffer->add_buffer_item($item);
			}
		}
		$mean = count($values) === 1 ? $values[0] : self::number(array_sum($values) / count($values));
		$buffer->add_test_result($identifier, $mean, implode(':', $values), $json);
		$object->test_result_buffer = $buffer;
	}

	private static function annotate($result_file, $hash, $line)
	{
		$object = $result_file->get_result_object_by_hash($hash);
		if($object && strpos((string)$object->get_annotation(), $line) === false)
		{
			$object->set_annotation(trim($object->get_annotation() . ' eeio: ' . $line . '.'));
		}
	}

	/** A result beside `$base`, of the same test, with another scale and no values yet. */
	private static function derive($base, $scale, $proportion)
	{
		$entry = clone $base;
		$entry->active = null;
		$entry->generated_result_buffers = array();
		$entry->test_result_buffer = new pts_test_result_buffer();
		// Without an identifier PTS will not try to run it when the file is benchmarked again.
		$entry->test_profile->set_identifier(null);
		$entry->test_profile->set_display_format('BAR_GRAPH');
		$entry->test_profile->set_result_scale($scale);
		$entry->test_profile->set_result_proportion($proportion);
		$entry->set_annotation(null);
		return $entry;
	}

	/** The meters and power domains that some trial was seen by. */
	private static function sources($trials)
	{
		$sources = array();
		foreach($trials as $trial)
		{
			foreach(isset($trial['readings']) ? $trial['readings'] : array() as $reading)
			{
				$sources[$reading['meter'] . ' ' . $reading['domain']] = array('meter' => $reading['meter'], 'domain' => $reading['domain'], 'kind' => $reading['kind']);
			}
		}
		return $sources;
	}

	/** trial => what this source says of it. */
	private static function readings_of($source, $trials)
	{
		$found = array();
		foreach($trials as $k => $trial)
		{
			foreach(isset($trial['readings']) ? $trial['readings'] : array() as $reading)
			{
				if($reading['meter'] === $source['meter'] && $reading['domain'] === $source['domain'])
				{
					$found[$k] = $reading;
				}
			}
		}
		return $found;
	}

	/** Whether what the drives draw is not in the power: its MB/J is not the storage's then. */
	private static function leave_drives_out($readings)
	{
		foreach($readings as $reading)
		{
			$left_out = isset($reading['leaves_out']) ? $reading['leaves_out'] : array();
			if(in_array('drives', $left_out) || in_array($reading['domain'], array('module', 'package', 'dram')))
			{
				return true;
			}
		}
		return false;
	}

	/** Why readings are doubtful, each reason once: which meter contradicts them. */
	private static function doubts_of($readings)
	{
		$doubts = array();
		foreach($readings as $reading)
		{
			if(!empty($reading['doubtful']))
			{
				$doubts = array_merge($doubts, $reading['reasons']);
			}
		}
		return array_unique($doubts);
	}

	private static function with_reading($trials, $source)
	{
		$readings = self::readings_of($source, $trials);
		$out = array();
		foreach($trials as $k => $trial)
		{
			unset($trial['readings'], $trial['told']);
			$out[] = $trial + array('reading' => isset($readings[$k]) ? $readings[$k] : null);
		}
		return $out;
	}

	private static function is_ours($request)
	{
		return strpos($request->test_profile->get_identifier(), 'local/eeio-') === 0;
	}

	/** Profiles of ours that name no level describe the machine (lmbench), not its I/O. */
	private static function describes_machine($request)
	{
		return self::is_ours($request) && strpos(' ' . $request->get_arguments(), ' level=') === false;
	}

	private static function title($title, $source)
	{
		return $title . ($source['kind'] === 'modelled' ? ' (ESTIMATE)' : '');
	}

	private static function words($quantity, $source)
	{
		$estimate = $source['kind'] === 'modelled' ? 'ESTIMATE: ' : '';
		return $estimate . $quantity . ' (' . $source['meter'] . ' ' . $source['domain'] . ')';
	}

	private static function kind_words($kind)
	{
		return $kind === 'modelled' ? 'ESTIMATE, not a measurement' : $kind;
	}

	private static function name_of($request)
	{
		return trim($request->test_profile->get_identifier() . ' ' . $request->get_arguments());
	}

	/** Six significant digits, never with an exponent: PTS parses it as text. */
	private static function number($value)
	{
		$size = abs((float)$value);
		$decimals = $size > 0 ? min(12, max(0, 5 - (int)floor(log10($size)))) : 0;
		return number_format((float)$value, $decimals, '.', '');
	}

	// ---------------------------------------------------------------- the end, of whatever kind

	public static function __post_run_process($manager)
	{
		if(self::$keeps_files)
		{
			self::unexport('EEIO_KEEP_FILES');
			$done = array();
			foreach($manager->get_tests_to_run() as $test)
			{
				$identifier = $test->test_profile->get_identifier();
				if(!isset($done[$identifier]))
				{
					$done[$identifier] = true;
					pts_tests::call_test_script($test->test_profile, 'post', 'Removing Test Files', $test->get_arguments(), null, true);
				}
			}
		}
	}

	public static function __event_results_process($manager)
	{
		// The collapsed entries are in the file since the last test; nothing of ours is left to add.
		self::close_session();
	}

	public static function __shutdown()
	{
		if(self::$owner !== null && self::$owner !== getmypid())
		{
			return;
		}
		self::close_session();
		self::check_saved();
		$command = isset($_SERVER['argv'][1]) ? $_SERVER['argv'][1] : '';
		if(!self::$began && self::$exit_code === 0 && in_array($command, array('benchmark', 'run', 'test')))
		{
			self::say('nothing was run: what PTS says above tells why');
			self::$exit_code = self::EXIT_FAILED;
		}
		$error = error_get_last();
		if($error !== null && in_array($error['type'], array(E_ERROR, E_PARSE, E_CORE_ERROR, E_COMPILE_ERROR)))
		{
			self::$exit_code = self::EXIT_FAILED;
		}
		if(!empty(self::$missing))
		{
			foreach(self::$missing as $line)
			{
				self::say('missing: ' . $line);
			}
			self::$exit_code = self::$exit_code ?: self::EXIT_INCOMPLETE;
		}
		if(self::$exit_code !== 0)
		{
			// Functions registered now are called last, so PTS has put everything away by then.
			$code = self::$exit_code;
			register_shutdown_function(function() use ($code) { self::leave($code); });
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

	private static function close_session()
	{
		if(self::$session !== null)
		{
			self::$session->close();
			self::$session = null;
		}
	}

	/** PTS truncates the file before it writes it: on a full disk the last whole one must survive. */
	private static function keep_good_copy($result_file)
	{
		$folder = PTS_SAVE_RESULTS_PATH . self::$manager->get_file_name();
		$xml = $result_file->get_xml();
		$new = $folder . '/eeio-composite.new';
		if(@file_put_contents($new, $xml) === strlen($xml) && @rename($new, $folder . '/eeio-composite.last'))
		{
			self::$good_copy = $folder . '/eeio-composite.last';
		}
		else
		{
			@unlink($new);
			self::$missing['disk'] = $folder . ': no space left; results after the last one that was saved';
		}
	}

	private static function check_saved()
	{
		if(self::$good_copy === null || !is_file(self::$good_copy))
		{
			return;
		}
		$path = dirname(self::$good_copy) . '/composite.xml';
		$errors = libxml_use_internal_errors(true);
		$whole = is_file($path) && filesize($path) > 0 && simplexml_load_file($path, 'SimpleXMLElement', LIBXML_NONET) !== false;
		libxml_use_internal_errors($errors);
		$whole ? @unlink(self::$good_copy) : @rename(self::$good_copy, $path);
		if(!$whole)
		{
			self::$missing['disk'] = $path . ': could not be written whole (disk full?); it holds what was saved before';
		}
	}

	/** Ctrl-C and SIGTERM: end the tool, write what there is, say what is missing. */
	private static function catch_signals()
	{
		if(!function_exists('pcntl_async_signals'))
		{
			return;
		}
		pcntl_async_signals(true);
		$handler = function($number)
		{
			if(self::$owner !== getmypid())
			{
				pcntl_signal($number, SIG_DFL);
				posix_kill(getmypid(), $number);
				return;
			}
			pcntl_signal(SIGINT, SIG_IGN);
			pcntl_signal(SIGTERM, SIG_IGN);
			self::stop($number);
		};
		// Without restarting: PTS waits in a read for the tool's output, which must return.
		pcntl_signal(SIGINT, $handler, false);
		pcntl_signal(SIGTERM, $handler, false);
	}

	private static function stop($number)
	{
		if(self::$pid !== null)
		{
			self::end_process(self::$pid);
		}
		$manager = self::$manager;
		$left = array();
		foreach($manager->get_tests_to_run() as $test)
		{
			$key = $test->test_profile->get_identifier() . ' ' . $test->get_arguments();
			if(!isset(self::$experiments[$key]))
			{
				$left[$key] = true;
			}
		}
		if(!empty(self::$experiments))
		{
			pts_client::save_test_result($manager->get_file_name() . '/composite.xml', $manager->result_file->get_xml(), false);
		}
		self::$missing[] = 'stopped by signal ' . $number . ' after ' . self::$trials_done . ' trials; ' . count($left) . ' of ' . (count($left) + count(self::$experiments)) . ' experiments have no result';
		self::$keeps_files ? self::__post_run_process($manager) : null;
		self::$exit_code = 128 + $number;
		exit(self::$exit_code);
	}

	/** The wrapper and what it started: a tool left running would disturb whatever comes next. */
	private static function end_process($pid)
	{
		foreach(preg_split('/\s+/', (string)@file_get_contents('/proc/' . $pid . '/task/' . $pid . '/children'), -1, PREG_SPLIT_NO_EMPTY) as $child)
		{
			self::end_process((int)$child);
		}
		posix_kill($pid, SIGTERM);
	}

	private static function refuse($line)
	{
		self::say($line);
		self::$began = true;
		self::$exit_code = self::EXIT_REFUSED;
		exit(self::EXIT_REFUSED);
	}

	private static function say($line)
	{
		fwrite(STDERR, self::line($line));
	}

	private static function drop_empty($folder)
	{
		if(is_dir($folder) && count(scandir($folder)) === 2)
		{
			rmdir($folder);
		}
	}

	// ---------------------------------------------------------------- settings, and other doors

	private static function setting($name, $default)
	{
		$value = getenv($name);
		return $value === false || $value === '' ? $default : $value;
	}

	private static function seconds($name, $default)
	{
		$value = self::setting($name, (string)$default);
		if(!is_numeric($value) || $value < 0 || $value > 86400)
		{
			self::refuse($name . '=' . $value . ': give seconds from 0 to 86400');
		}
		return (float)$value;
	}

	/** PTS gives a test's scripts the environment that it was started with, out of $_SERVER. */
	private static function export($name, $value)
	{
		putenv($name . '=' . $value);
		$_SERVER[$name] = $value;
	}

	private static function unexport($name)
	{
		putenv($name);
		unset($_SERVER[$name]);
	}

	/** What PTS offers no way to set. */
	private static function property($manager, $name)
	{
		$property = new ReflectionProperty('pts_test_run_manager', $name);
		$property->setAccessible(true);
		return $property;
	}

	/** The session's answer; one with `error` when it says so or is gone. */
	private static function ask($request, $extra_s)
	{
		try
		{
			return self::$session->ask($request, $extra_s);
		}
		catch(RuntimeException $error)
		{
			return array('error' => $error->getMessage());
		}
	}
}

/** The Python process that samples, and the pipe to it. */
class eeio_power_session
{
	const START_LIMIT_S = 30;

	/** name, spec, kind, domains and period_s of each open meter. */
	public $meters;

	private $process;
	private $pipes;
	private $rest = '';
	/** Answers that have not come yet: one line a request, in order. */
	private $owed = 0;

	/** Throws RuntimeException with a line that says what is wrong. */
	public function __construct($specs, $samples, $allow_estimates)
	{
		$command = array(self::python(), '-m', 'eeio_power.session', '--samples', $samples);
		foreach($specs as $spec)
		{
			array_push($command, '--meter', $spec);
		}
		if($allow_estimates)
		{
			$command[] = '--allow-estimates';
		}
		$packages = array(__DIR__, dirname(__DIR__) . '/result-parsers', dirname(__DIR__) . '/scripts');
		$environment = array('PYTHONPATH' => implode(':', array_filter($packages, 'is_dir'))) + getenv();
		$wiring = array(array('pipe', 'r'), array('pipe', 'w'), array('file', '/dev/null', 'w'));
		$this->process = @proc_open($command, $wiring, $this->pipes, dirname($samples), $environment);
		if(!is_resource($this->process))
		{
			throw new RuntimeException($command[0] . ' cannot be started: EEIO_PYTHON names Python 3.11 or newer');
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

	/** Reads a trial's output: the package `eeio`, where it is there (a checkout, or installed). */
	public function tell_command()
	{
		return array(self::python(), '-m', 'eeio.pts.trial');
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
		$deadline = microtime(true) + $limit_s;
		while(($end = strpos($this->rest, "\n")) === false)
		{
			$read = array($this->pipes[1]);
			$none = null;
			$left = $deadline - microtime(true);
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
				throw new RuntimeException('the power session has ended: is ' . self::python() . ' Python 3.11 or newer?');
			}
			$this->rest .= $piece;
		}
		$line = substr($this->rest, 0, $end);
		$this->rest = substr($this->rest, $end + 1);
		$answer = json_decode($line, true);
		return is_array($answer) ? $answer : array('error' => 'the power session says: ' . substr($line, 0, 200));
	}

	/** EEIO_PYTHON, the checkout's own environment, or the system's. */
	private static function python()
	{
		$own = dirname(__DIR__) . '/.venv/bin/python';
		return getenv('EEIO_PYTHON') ?: (is_executable($own) ? $own : 'python3');
	}
}
