<?php

/** Entries of a result file: how one is made beside another, and in which words and numbers. */
class eeio_power_entries
{
	/** A result beside `$base`, of the same test, with another scale and no values yet. */
	public static function derive($base, $scale, $proportion)
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

	/** One item for this system, in place of those it has; other systems' items stay. */
	public static function set_values($object, $identifier, $mean, $values, $json)
	{
		$buffer = new pts_test_result_buffer();
		foreach($object->test_result_buffer->get_buffer_items() ?: array() as $item)
		{
			if($item->get_result_identifier() !== $identifier)
			{
				$buffer->add_buffer_item($item);
			}
		}
		$buffer->add_test_result($identifier, $mean, implode(':', $values), $json);
		$object->test_result_buffer = $buffer;
	}
}
