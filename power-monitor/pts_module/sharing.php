<?php

/** Fictitious power (meter demo) is for a first look: results that have it are not uploaded. */
class eeio_power_sharing
{
	const WHY = 'the power is fictitious (meter demo), so that the results are not uploaded; measure with a meter';

	/** No upload is offered at the end of a run with such a meter. */
	public static function restrict($manager, $meters)
	{
		if(in_array('demo', array_column($meters, 'kind'), true))
		{
			eeio_power_order::property('allow_sharing_of_results')->setValue($manager, false);
			eeio_power_ending::tell(self::WHY);
		}
	}

	/** Ends PTS's command upload-result if its results are such. */
	public static function check_upload($ending)
	{
		$name = isset($_SERVER['argv'][2]) ? $_SERVER['argv'][2] : '';
		$file = pts_types::identifier_to_object($name);
		if($file instanceof pts_result_file && self::is_demo($file->get_xml()))
		{
			$ending->refuse($name . ': ' . self::WHY);
		}
	}

	private static function is_demo($xml)
	{
		return preg_match('/"kind": ?"demo"/', html_entity_decode($xml)) === 1;
	}
}
