<?php

/** The suites and profiles that PTS was told to run. */
class eeio_power_suites
{
	/** The words of the command line behind `benchmark`. */
	public static function words()
	{
		return array_slice(isset($_SERVER['argv']) ? $_SERVER['argv'] : array(), 2);
	}

	/** A suite that names a missing profile, or one whose install failed, would run without it. */
	public static function check($words)
	{
		foreach($words as $word)
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
					throw new eeio_power_refused($word . ' names the test profile ' . $identifier . ', which is not there: link it (scripts/setup --pts) or take it out of the suite');
				}
				if(!$profile->test_installation || !$profile->test_installation->is_installed())
				{
					throw new eeio_power_refused($identifier . ' of ' . $word . ' is not installed: `phoronix-test-suite install ' . $identifier . '` shows why');
				}
			}
		}
	}

	/** The folders of the suites among them; null for a word that is a profile, outside of a suite. */
	public static function folders($words)
	{
		$folders = array();
		foreach($words as $word)
		{
			$object = pts_types::identifier_to_object($word);
			if($object instanceof pts_test_suite)
			{
				$folders[] = self::folder($word, $object);
			}
			else if($object instanceof pts_test_profile)
			{
				$folders[] = null;
			}
		}
		return array_unique($folders);
	}

	private static function folder($word, $suite)
	{
		foreach(array($word, $suite->get_identifier(), 'local/' . $word) as $candidate)
		{
			if(is_file(PTS_TEST_SUITE_PATH . $candidate . '/suite-definition.xml'))
			{
				return PTS_TEST_SUITE_PATH . $candidate;
			}
		}
		return null;
	}

	/** PTS leaves what it does not find out of its own list, so the definition is read. */
	private static function profiles_named_by($word, $suite)
	{
		$names = array();
		$folder = self::folder($word, $suite);
		$xml = $folder === null ? false : simplexml_load_file($folder . '/suite-definition.xml', 'SimpleXMLElement', LIBXML_NONET);
		foreach($xml === false ? array() : $xml->Execute as $execute)
		{
			$test = (string)$execute->Test;
			if(strpos($test, 'local/') === 0 || strpos($test, '/eeio-') !== false)
			{
				$names[] = $test;
			}
		}
		return array_unique($names);
	}
}
