<?php

/** What goes into PTS's result file: the values again, with their trials; power, energy, MB/J. */
class eeio_power_results
{
	private $manager;
	private $file;
	private $is_random;

	public function __construct($manager, $file, $is_random)
	{
		$this->manager = $manager;
		$this->file = $file;
		$this->is_random = $is_random;
	}

	/** What the machine takes when nothing runs: results of their own. Gives what is missing. */
	public function publish_idle($window)
	{
		$missing = array();
		foreach(isset($window['readings']) ? $window['readings'] : array() as $reading)
		{
			if(!$reading['valid'])
			{
				$missing[] = 'idle baseline of ' . $reading['meter'] . ' ' . $reading['domain'] . ': ' . implode('; ', $reading['reasons']);
				continue;
			}
			$entry = eeio_power_entries::derive($this->manager->get_test_to_run(0), 'W', 'LIB');
			$entry->test_profile->set_test_title(eeio_power_entries::title('eeio: idle baseline', $reading));
			$entry->test_profile->set_version('');
			$entry->set_used_arguments('idle');
			$entry->set_used_arguments_description(eeio_power_entries::words('Idle Power', $reading));
			$this->set_item($entry, array($reading['power_w']), array('eeio' => array('idle' => $window)));
		}
		return $missing;
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
		$missing = array();
		foreach($experiment->sources() as $source)
		{
			$name = $source['meter'] . ' ' . $source['domain'];
			$readings = $experiment->readings_of($source, $taken);
			$valid = array_filter($readings, function($reading) { return $reading['valid']; });
			if(count($valid) < count($taken))
			{
				$bad = array_diff_key($readings, $valid);
				$why = empty($bad) ? 'no reading' : implode('; ', reset($bad)['reasons']);
				$line = (count($taken) - count($valid)) . ' of ' . count($taken) . ' trials have no energy of ' . $name . ': ' . $why;
				$this->annotate(key($shown), $line);
				$missing[md5($experiment->name() . $source['meter'] . $source['domain'])] = $experiment->name() . ': ' . $line;
			}
			if(empty($valid))
			{
				continue;
			}
			foreach(eeio_power_entries::doubts_of($valid) as $doubt)
			{
				$this->annotate(key($shown), 'doubtful: ' . $doubt);
			}
			$this->publish_energy($experiment, $source, $valid, $shown);
			foreach($bandwidths as $hash => $entry)
			{
				list($values, $reasons) = eeio_power_efficiency::of($entry, $bandwidths, $source, $valid, $experiment->trials);
				if(!empty($reasons))
				{
					$this->annotate($hash, count($reasons) . ' of ' . count($taken) . ' trials have no MB/J of ' . $name . ': ' . reset($reasons));
				}
				$this->publish_efficiency($hash, $entry, $source, $valid, $values, $taken);
			}
		}
		return $missing;
	}

	private function publish_energy($experiment, $source, $valid, $shown)
	{
		$first = reset($shown);
		$times = self::times($experiment->trials, $valid);
		foreach(array('power_w' => array('Power', 'W'), 'energy_j' => array('Energy', 'J')) as $field => $words)
		{
			$derived = eeio_power_entries::derive($first['result'], $words[1], 'LIB');
			$derived->test_profile->set_test_title(eeio_power_entries::title($first['result']->test_profile->get_title(), $source));
			$derived->set_used_arguments_description($experiment->request->get_arguments_description() . ' - ' . eeio_power_entries::words($words[0], $source));
			$derived->set_used_arguments($experiment->request->get_arguments());
			$derived->set_parent_hash(key($shown));
			$json = array('test-run-times' => $times, 'eeio' => array('quantity' => $field) + $source);
			if($field === 'energy_j')
			{
				$json['eeio']['trials'] = $experiment->with_reading($source);
			}
			$this->set_item($derived, array_column($valid, $field), $json);
		}
	}

	private function publish_efficiency($hash, $entry, $source, $valid, $values, $trials)
	{
		if(empty($values))
		{
			return;
		}
		$derived = eeio_power_entries::derive($entry['result'], 'MB/J', 'HIB');
		$derived->test_profile->set_test_title(eeio_power_entries::title($entry['result']->test_profile->get_title(), $source));
		$derived->set_used_arguments_description($entry['result']->get_arguments_description() . ' - ' . eeio_power_entries::words('Mean Energy Efficiency', $source) . (eeio_power_entries::leave_drives_out($valid) ? ', without drives' : ''));
		$derived->set_parent_hash($hash);
		$json = array('test-run-times' => self::times($trials, $values), 'eeio' => array('quantity' => 'efficiency_mb_per_j') + $source);
		$this->set_item($derived, array_values($values), $json);
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
		eeio_power_entries::set_values($object, $this->manager->get_results_identifier(), array_values($entry['values']), $json);
	}

	/** How long the trials took that have one of `$values`, s, as PTS writes it. */
	private static function times($trials, $values)
	{
		return implode(':', array_map(function($k) use ($trials) { return round($trials[$k]['duration_s'], 3); }, array_keys($values)));
	}

	private function set_item($entry, $values, $json)
	{
		$entry->test_result_buffer = new pts_test_result_buffer();
		$stored = $this->file->get_result_object_by_hash($entry->get_comparison_hash(true, false));
		$stored = $stored ?: $this->file->add_result_return_object($entry);
		eeio_power_entries::set_values($stored, $this->manager->get_results_identifier(), array_map(array('eeio_power_entries', 'number'), $values), $json);
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
