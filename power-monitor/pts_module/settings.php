<?php

/** Wrong usage: nothing was run, and the line says what to do. */
class eeio_power_refused extends RuntimeException
{
}

/** What the environment says, checked; and what it says to the tests' scripts. */
class eeio_power_settings
{
	const MOST_S = 86400;

	public static function text($name, $default)
	{
		$value = getenv($name);
		return $value === false || $value === '' ? $default : $value;
	}

	public static function preset()
	{
		return self::text('EEIO_PRESET', 'standard');
	}

	/** The specs of EEIO_METER; none: every measured source. */
	public static function meters()
	{
		return preg_split('/\s+/', self::text('EEIO_METER', ''), -1, PREG_SPLIT_NO_EMPTY);
	}

	/** Whether all repetitions of all experiments run in one random order. */
	public static function is_random()
	{
		$protocol = self::text('EEIO_PROTOCOL', 'native');
		if($protocol !== 'random' && $protocol !== 'native')
		{
			throw new eeio_power_refused('EEIO_PROTOCOL=' . $protocol . ': give native or random');
		}
		return $protocol === 'random';
	}

	/** Seconds from 0 to a day; null where the setting is not there. */
	public static function seconds($name)
	{
		$value = self::text($name, null);
		if($value !== null && (!is_numeric($value) || $value < 0 || $value > self::MOST_S))
		{
			throw new eeio_power_refused($name . '=' . $value . ': give seconds from 0 to ' . self::MOST_S);
		}
		return $value === null ? null : (float)$value;
	}

	/** EEIO_SEED, or one that is drawn once. */
	public static function seed()
	{
		static $seed = null;
		if($seed === null)
		{
			$text = self::text('EEIO_SEED', (string)random_int(0, 2147483647));
			if(!preg_match('/^[0-9]{1,9}$|^[12][0-9]{9}$/', $text))
			{
				throw new eeio_power_refused('EEIO_SEED=' . $text . ': give a whole number from 0 to 2147483647');
			}
			$seed = (int)$text;
		}
		return $seed;
	}

	/** PTS gives a test's scripts the environment that it was started with, out of $_SERVER. */
	public static function export($name, $value)
	{
		putenv($name . '=' . $value);
		$_SERVER[$name] = $value;
	}

	public static function unexport($name)
	{
		putenv($name);
		unset($_SERVER[$name]);
	}
}
