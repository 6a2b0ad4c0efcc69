<?php

/** Entries of a result file: how one is made beside another, and in which words and numbers. */
class eeio_power_entries
{
	/** Of power that was not measured. */
	const MARKS = array('modelled' => 'ESTIMATE', 'demo' => 'DEMO');

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
	public static function set_values($object, $identifier, $values, $json)
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

	/** Whether what the drives draw is not in the power: its MB/J is not the storage's then. */
	public static function leave_drives_out($readings)
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
	public static function doubts_of($readings)
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

	public static function title($title, $source)
	{
		return $title . (isset(self::MARKS[$source['kind']]) ? ' (' . self::MARKS[$source['kind']] . ')' : '');
	}

	public static function words($quantity, $source)
	{
		$mark = isset(self::MARKS[$source['kind']]) ? self::MARKS[$source['kind']] . ': ' : '';
		return $mark . $quantity . ' (' . $source['meter'] . ' ' . $source['domain'] . ')';
	}

	public static function kind_words($kind)
	{
		return isset(self::MARKS[$kind]) ? self::MARKS[$kind] . ', not a measurement' : $kind;
	}

	/** Six significant digits, never with an exponent: PTS parses it as text. */
	public static function number($value)
	{
		$size = abs((float)$value);
		$decimals = $size > 0 ? min(12, max(0, 5 - (int)floor(log10($size)))) : 0;
		return number_format((float)$value, $decimals, '.', '');
	}
}
