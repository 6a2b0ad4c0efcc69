<?php

/**
 * MB/J of the trials of an experiment, or why there is none.
 *
 * What the trial's own output told comes from Python, by the rule of the run record: of a phase with its
 * own window, and none where the tool did I/O in too little of it. Where nothing could be told (a tool
 * that is not ours, no package `eeio`), a trial with one bandwidth is one phase of which nobody knows
 * how much was I/O, as `eeio import` takes it; of several bandwidths in a trial the power is none's.
 */
class eeio_power_efficiency
{
	const NO_PHASE = 'no phase of the trial has this bandwidth alone, and its power is that of all its I/O';
	const NOT_ITS_OWN = 'a trial with several bandwidths has one power, which is none of theirs';

	/** Two arrays by trial: MB/J, and reasons. `$entry` is one of `$bandwidths`. */
	public static function of($entry, $bandwidths, $source, $valid, $trials)
	{
		$values = $reasons = array();
		foreach($valid as $k => $reading)
		{
			if(!isset($entry['values'][$k]))
			{
				continue;
			}
			if(isset($trials[$k]['efficiency']))
			{
				$told = self::told($trials[$k]['efficiency'], $entry['result']->get_arguments_description(), $source);
				if($told['mb_per_j'] !== null)
				{
					$values[$k] = $told['mb_per_j'];
				}
				else
				{
					$reasons[$k] = $told['reason'];
				}
			}
			else if(count($bandwidths) > 1)
			{
				$reasons[$k] = self::NOT_ITS_OWN . (isset($trials[$k]['not_told']) ? ' (' . $trials[$k]['not_told'] . ')' : '');
			}
			else if($reading['power_w'] > 0)
			{
				$values[$k] = $entry['values'][$k] / $reading['power_w'];
			}
		}
		return array($values, $reasons);
	}

	/** The longest words that the description ends with are the result's: `Random Read` ends with `Read` too. */
	private static function told($efficiencies, $description, $source)
	{
		$found = null;
		foreach($efficiencies as $item)
		{
			$words = (string)$item['words'];
			$is_its = $words !== '' && substr($description, -strlen($words)) === $words;
			if($is_its && $item['meter'] === $source['meter'] && $item['domain'] === $source['domain'])
			{
				if($found === null || strlen($words) > strlen($found['words']))
				{
					$found = $item;
				}
			}
		}
		return $found ?: array('mb_per_j' => null, 'reason' => self::NO_PHASE);
	}
}
