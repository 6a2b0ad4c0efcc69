<?php

/** Without a terminal PTS asks for ever: whatever it would ask is answered here, or refused. */
class eeio_power_questions
{
	public static function somebody_answers()
	{
		return function_exists('stream_isatty') && defined('STDIN') && stream_isatty(STDIN);
	}

	public static function answer($manager, $preset)
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
			throw new eeio_power_refused('TEST_RESULTS_NAME=' . $name . ': is a test or suite, or longer than 126 letters; give another name');
		}
		$path = PTS_SAVE_RESULTS_PATH . pts_test_run_manager::clean_save_name($name) . '/composite.xml';
		if(is_file($path))
		{
			$identifier = pts_test_run_manager::clean_results_identifier(pts_env::read('TEST_RESULTS_IDENTIFIER'));
			$before = new pts_result_file($path);
			if(in_array($identifier, $before->get_system_identifiers()))
			{
				throw new eeio_power_refused($path . ' has results of "' . $identifier . '" already: give another TEST_RESULTS_NAME or TEST_RESULTS_IDENTIFIER');
			}
		}
		// The question whether to upload has no default; uploading is `upload-result`'s, on purpose.
		eeio_power_order::property('allow_sharing_of_results')->setValue($manager, false);
	}
}
