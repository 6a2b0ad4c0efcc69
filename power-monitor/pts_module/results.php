<?php

/** What goes into PTS's result file: the values again, with their trials; and the entries of power, energy and MB/J, which Python makes. */
class eeio_power_results
{
	private $manager;
	private $file;
	private $is_random;
	private $session;

	/** `$session` is null where there is none. */
	public function __construct($manager, $file, $is_random, $session)
	{
		$this->session = $session;
		$this->manager = $manager;
		$this->file = $file;
		$this->is_random = $is_random;
	}

	/** What the machine takes when nothing runs: results of their own. Gives what is missing. */
	public function publish_idle($window)
	{
		foreach(isset($window['entries']) ? $window['entries'] : array() as $made)
		{
			$this->insert($this->manager->get_test_to_run(0), $made);
		}
		return isset($window['missing']) ? $window['missing'] : array();
	}

	/**
	 * PTS keeps an empty entry for a test that failed. It goes when other trials of the same
	 * experiment have values; else it is made anew, for PTS crashes when it overwrites it itself.
	 */
	public function settle_failed_entry($experiment)
	{
		$hash = $experiment->request->get_comparison_hash(true, false);
		$object = $this->file->get_result_object_by_hash($hash);
		if(!$object || !$object->test_result_buffer)
		{
			return;
		}
		$identifier = $this->manager->get_results_identifier();
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
		if(empty($experiment->results))
		{
			$buffer->add_test_result($identifier, '', '', $failed->get_result_json());
		}
		$object->test_result_buffer = $buffer;
		if(count($buffer->get_buffer_items() ?: array()) === 0)
		{
			$this->file->remove_result_object_by_id($hash, false);
		}
	}

	/** All that is known of an experiment so far. Gives what is missing, a line a source. */
	public function publish($experiment)
	{
		$first_hash = key($experiment->results);
		foreach($experiment->results as $hash => $entry)
		{
			$this->publish_values($hash, $entry, $experiment->trials, $hash === $first_hash);
		}
		$bandwidths = $experiment->results_in('MB/s');
		// Files that are created have power and energy, and no MB/J.
		$shown = $bandwidths ?: $experiment->results_in('Files/s');
		if(empty($shown) || $experiment->describes_machine())
		{
			return array();
		}
		$count = count($experiment->trials);
		$taken = $experiment->taken();
		if(count($taken) < $count)
		{
			$this->annotate(key($shown), ($count - count($taken)) . ' of ' . $count . ' trials failed and have no values');
		}
		$made = $this->session === null ? array() : $this->session->try_to_ask($experiment->to_ask($shown), 0);
		if(isset($made['error']))
		{
			return array($experiment->name() . ': no power, energy and MB/J: ' . $made['error']);
		}
		foreach(isset($made['entries']) ? $made['entries'] : array() as $entry)
		{
			$this->insert($shown[$entry['base']]['result'], $entry);
		}
		foreach(isset($made['annotations']) ? $made['annotations'] : array() as list($hash, $line))
		{
			$this->annotate($hash, $line);
		}
		return isset($made['missing']) ? $made['missing'] : array();
	}

	/** An entry that Python made, derived from a result; the idle baseline is of no test. */
	private function insert($base, $made)
	{
		$entry = eeio_power_entries::derive($base, $made['scale'], $made['proportion']);
		$entry->test_profile->set_test_title($made['title']);
		$entry->set_used_arguments_description($made['description']);
		if($made['arguments'] !== null)
		{
			$entry->set_used_arguments($made['arguments']);
		}
		if($made['base'] !== null)
		{
			$entry->set_parent_hash($made['base']);
		}
		else
		{
			$entry->test_profile->set_version('');
		}
		$stored = $this->file->get_result_object_by_hash($entry->get_comparison_hash(true, false));
		$stored = $stored ?: $this->file->add_result_return_object($entry);
		eeio_power_entries::set_values($stored, $this->manager->get_results_identifier(), $made['value'], $made['values'], $made['json']);
	}

	/** The tool's own values again: one entry for all trials of the random order, and their numbers. */
	private function publish_values($hash, $entry, $trials, $is_first)
	{
		$object = $this->file->get_result_object_by_hash($hash) ?: $this->file->get_result($hash);
		if(!$object || empty($entry['values']))
		{
			return;
		}
		$json = array();
		foreach($object->test_result_buffer->get_buffer_items() as $item)
		{
			if($item->get_result_identifier() === $this->manager->get_results_identifier() && is_array($item->get_result_json()))
			{
				$json = $item->get_result_json();
			}
		}
		$timed = array_filter(array_intersect_key($trials, $entry['values']), function($trial) { return isset($trial['duration_s']); });
		if($this->is_random && count($timed) === count($entry['values']))
		{
			$json['test-run-times'] = self::times($trials, $entry['values']);
		}
		$json['eeio'] = array('trial-of-value' => array_keys($entry['values']), 'trials' => count($trials));
		$told = array_map(function($trial) { return isset($trial['told']) ? $trial['told'] : null; }, $trials);
		if($is_first && array_filter($told))
		{
			$json['eeio']['told'] = $told;
		}
		$values = array_values($entry['values']);
		$mean = count($values) === 1 ? $values[0] : self::number(pts_math::arithmetic_mean($values));
		eeio_power_entries::set_values($object, $this->manager->get_results_identifier(), $mean, $values, $json);
	}

	/** How long the trials took that have one of `$values`, s, as PTS writes it. */
	private static function times($trials, $values)
	{
		return implode(':', array_map(function($k) use ($trials) { return round($trials[$k]['duration_s'], 3); }, array_keys($values)));
	}

	/** Six significant digits, never with an exponent: PTS parses it as text. */
	private static function number($value)
	{
		$size = abs((float)$value);
		$decimals = $size > 0 ? min(12, max(0, 5 - (int)floor(log10($size)))) : 0;
		return number_format((float)$value, $decimals, '.', '');
	}

	private function annotate($hash, $line)
	{
		$object = $this->file->get_result_object_by_hash($hash);
		if($object && strpos((string)$object->get_annotation(), $line) === false)
		{
			$object->set_annotation(trim($object->get_annotation() . ' eeio: ' . $line . '.'));
		}
	}
}
