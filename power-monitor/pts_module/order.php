<?php

/** The protocol that PTS lacks: all repetitions of all experiments in one random order. */
class eeio_power_order
{
	/** EEIO_KEEP_FILES was set by us, so the files are ours to remove at the end. */
	private $keeps_files = false;

	/** Changes the manager's queue; the seed repeats the order. Gives the number of trials. */
	public function shuffle($manager, $repetitions)
	{
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
		mt_srand(eeio_power_settings::seed());
		for($k = count($queue) - 1; $k > 0; $k--)
		{
			$other = mt_rand(0, $k);
			list($queue[$k], $queue[$other]) = array($queue[$other], $queue[$k]);
		}
		self::property('tests_to_run')->setValue($manager, $queue);
		self::property('do_dynamic_run_count')->setValue($manager, false);
		pts_env::set('FORCE_TIMES_TO_RUN', 1);
		// PTS runs a test of the same name again only inside its own loop.
		pts_env::set('TOTAL_LOOP_COUNT', 1);
		$manager->sleep_time_between_tests = 0;
		if(getenv('EEIO_KEEP_FILES') === false)
		{
			// Experiments take turns: each would write its files anew.
			$this->keeps_files = true;
			eeio_power_settings::export('EEIO_KEEP_FILES', '1');
		}
		return count($queue);
	}

	/** Removes the files that were kept between the turns; may be called without any. */
	public function remove_files($manager)
	{
		if(!$this->keeps_files)
		{
			return;
		}
		eeio_power_settings::unexport('EEIO_KEEP_FILES');
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

	/** What PTS offers no way to set. */
	public static function property($name)
	{
		$property = new ReflectionProperty('pts_test_run_manager', $name);
		$property->setAccessible(true);
		return $property;
	}
}
