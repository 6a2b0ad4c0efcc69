<?php

/**
 * A module of the Phoronix Test Suite: power, energy and MB/J of every trial, next to its bandwidth.
 *
 * eeio/pts/session.py does the sampling and all arithmetic on power, in one process per run, which
 * the module starts and queries. This file contains only the hooks that PTS calls; the classes are in
 * pts_module/.
 *
 * Settings, from the environment: EEIO_METER (specs, separated by blanks; unset: every measured
 * source), EEIO_PROTOCOL (native or random), EEIO_SEED, EEIO_PRESET, EEIO_WORK, and EEIO_IDLE_S, EEIO_SETTLE_S
 * in seconds, EEIO_PYTHON. docs/how-to/use-pts.md describes them all.
 */
// PTS's folder of modules contains a link to this file.
foreach(glob(dirname(realpath(__FILE__)) . '/pts_module/*.php') as $eeio_power_file)
{
	require_once($eeio_power_file);
}

class eeio_power extends pts_module_interface
{
	const module_name = 'eeio power';
	const module_version = '1.0.0';
	const module_description = 'Adds power (W), energy (J) and energy efficiency (MB/J) of every single trial to the results.';
	const module_author = 'The eeio authors';

	private static $ending = null;
	private static $manager = null;
	private static $session = null;
	private static $protocol = null;
	private static $order = null;
	private static $trials = null;
	/** Everything so far, by test and arguments. */
	private static $experiments = array();

	public static function module_environment_variables()
	{
		return array('EEIO_METER', 'EEIO_PROTOCOL');
	}

	public static function module_info()
	{
		return 'Power, energy and MB/J of every trial; see docs/how-to/use-pts.md of eeio.';
	}

	public static function __pre_option_process($command)
	{
		if($command === 'upload_result' && class_exists('eeio_power_sharing', false))
		{
			eeio_power_sharing::check_upload(self::ending());
		}
	}

	// ---------------------------------------------------------------- before the first trial

	public static function __run_manager_setup(&$manager)
	{
		if(!class_exists('eeio_power_ending', false))
		{
			fwrite(STDERR, 'eeio_power: the folder pts_module does not lie beside ' . __FILE__ . ': link the module (scripts/pts-link) rather than copy it' . PHP_EOL);
			exit(2);
		}
		try
		{
			self::set_up($manager);
		}
		catch(eeio_power_refused $refused)
		{
			self::ending()->refuse($refused->getMessage());
		}
	}

	public static function __pre_run_process($manager)
	{
		self::$manager = $manager;
		self::ending()->own();
		self::ending()->catch_signals(function($number) { self::stop($number); });
		try
		{
			$left_out = self::$protocol->leave_out($manager);
			if($left_out > 0)
			{
				eeio_power_ending::tell('the preset ' . eeio_power_settings::preset() . ' leaves out ' . $left_out . ' tests of the suite');
			}
			$manager->sleep_time_between_tests = self::$protocol->pause_s($manager->sleep_time_between_tests);
			self::start_session(PTS_SAVE_RESULTS_PATH . $manager->get_file_name());
			eeio_power_sharing::restrict($manager, self::$session === null ? array() : self::$session->meters);
			self::measure_idle($manager);
			self::$order = new eeio_power_order();
			if(eeio_power_settings::is_random())
			{
				$count = self::$order->shuffle($manager, self::$protocol->repetitions());
				eeio_power_ending::tell($count . ' trials in one random order, seed ' . eeio_power_settings::seed());
			}
		}
		catch(eeio_power_refused $refused)
		{
			self::ending()->refuse($refused->getMessage());
		}
	}

	private static function set_up($manager)
	{
		$is_random = eeio_power_settings::is_random();
		$preset = eeio_power_settings::preset();
		$words = eeio_power_suites::words();
		self::$protocol = new eeio_power_protocol($preset, eeio_power_suites::folders($words));
		eeio_power_settings::seconds('EEIO_SETTLE_S');
		eeio_power_settings::seconds('EEIO_IDLE_S');
		eeio_power_suites::check($words);
		if(!eeio_power_questions::somebody_answers())
		{
			eeio_power_questions::answer($manager, $preset);
		}
		foreach(array('EEIO_PRESET' => $preset, 'EEIO_PROTOCOL' => $is_random ? 'random' : 'native') as $name => $value)
		{
			pts_module_manager::var_store_add($name, $value);
		}
		if(($work = self::$protocol->work()) !== null)
		{
			eeio_power_settings::export('EEIO_WORK', $work);
			pts_module_manager::var_store_add('EEIO_WORK', $work);
		}
		// Rejected now rather than after an idle baseline.
		self::$protocol->is_known() ? self::$protocol->idle_s() : null;
		if($is_random)
		{
			self::$protocol->repetitions();
			self::$protocol->settle_s();
			pts_module_manager::var_store_add('EEIO_SEED', eeio_power_settings::seed());
		}
	}

	private static function start_session($folder)
	{
		self::$session = eeio_power_session::open($folder);
		$output = null;
		// Without a meter it still reports the phases of a trial and the state of the drive.
		if(self::$session !== null && getenv('EEIO_OUTPUT_DIR') === false)
		{
			$output = $folder . '/eeio-trials/now';
			eeio_power_settings::export('EEIO_OUTPUT_DIR', $output);
		}
		self::$trials = new eeio_power_trials(self::$session, $output);
	}

	/** The idle power of the machine. */
	private static function measure_idle($manager)
	{
		if(self::$session === null || empty(self::$session->meters) || $manager->get_test_count() == 0)
		{
			return;
		}
		try
		{
			$seconds = self::$protocol->idle_s();
		}
		catch(eeio_power_refused $unknown)
		{
			self::ending()->miss(array('idle baseline: ' . $unknown->getMessage()));
			return;
		}
		if($seconds == 0)
		{
			return;
		}
		eeio_power_ending::tell('measuring idle power for ' . $seconds . ' s');
		$window = self::$session->try_to_ask(array('do' => 'idle', 'seconds' => $seconds), $seconds);
		self::ending()->miss(self::results($manager->result_file)->publish_idle($window));
	}

	// ---------------------------------------------------------------- trials

	public static function __pre_test_run($request)
	{
		self::$trials->begin_test($request);
		if(eeio_power_settings::is_random())
		{
			eeio_power_settings::export('EEIO_RUN_SEED', (string)mt_rand(1, 2147483646));
			// Dirty pages of the test before are not this test's to write back.
			self::$session !== null ? self::$session->try_to_ask(array('do' => 'sync'), 600) : shell_exec('sync');
			usleep((int)(self::$protocol->settle_s() * 1e6));
		}
	}

	public static function __calling_test_script($request)
	{
		self::$trials->begin($request);
	}

	public static function __test_running($process)
	{
		self::$trials->watch($process);
	}

	public static function __interim_test_run($request)
	{
		self::$trials->end();
		self::$trials->count_results($request);
	}

	public static function __post_test_run_success($result)
	{
		self::$trials->end();
		self::$trials->results[] = $result;
	}

	/** After each test, also a failed one: missing results are reported, the rest is in the file. */
	public static function __post_test_run_process($result_file)
	{
		self::$trials->end();
		$request = self::$trials->request;
		if($request === null)
		{
			return;
		}
		$key = eeio_power_experiment::key($request);
		if(!isset(self::$experiments[$key]))
		{
			self::$experiments[$key] = new eeio_power_experiment($request);
		}
		self::ending()->miss(self::$experiments[$key]->add(self::$trials));
		$results = self::results($result_file);
		$results->settle_failed_entry(self::$experiments[$key]);
		self::ending()->miss($results->publish(self::$experiments[$key]));
		self::$trials->end_test();
		self::ending()->keep_good_copy(PTS_SAVE_RESULTS_PATH . self::$manager->get_file_name(), $result_file);
	}

	// ---------------------------------------------------------------- the end, of whatever kind

	public static function __post_run_process($manager)
	{
		self::$order->remove_files($manager);
	}

	public static function __event_results_process($manager)
	{
		// The collapsed entries are in the file since the last test; we have no further entries to add.
		self::close_session();
	}

	public static function __shutdown()
	{
		if(!class_exists('eeio_power_ending', false) || self::ending()->is_of_a_child())
		{
			return;
		}
		self::close_session();
		self::ending()->end();
	}

	/** Stopped by a signal: end the tool, write the present results, report missing ones. */
	private static function stop($number)
	{
		self::$trials !== null ? self::$trials->kill() : null;
		$manager = self::$manager;
		$left = array();
		foreach($manager->get_tests_to_run() as $test)
		{
			$key = eeio_power_experiment::key($test);
			if(!isset(self::$experiments[$key]))
			{
				$left[$key] = true;
			}
		}
		if(!empty(self::$experiments))
		{
			pts_client::save_test_result($manager->get_file_name() . '/composite.xml', $manager->result_file->get_xml(), false);
		}
		$done = self::$trials !== null ? self::$trials->done : 0;
		self::ending()->miss(array('stopped by signal ' . $number . ' after ' . $done . ' trials; ' . count($left) . ' of ' . (count($left) + count(self::$experiments)) . ' experiments have no result'));
		self::$order !== null ? self::$order->remove_files($manager) : null;
	}

	private static function close_session()
	{
		if(self::$session !== null)
		{
			self::$session->close();
			self::$session = null;
		}
	}

	private static function results($result_file)
	{
		return new eeio_power_results(self::$manager, $result_file, eeio_power_settings::is_random(), self::$session);
	}

	private static function ending()
	{
		if(self::$ending === null)
		{
			self::$ending = new eeio_power_ending();
		}
		return self::$ending;
	}
}
