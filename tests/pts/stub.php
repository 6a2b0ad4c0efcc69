<?php

/**
 * As much of the Phoronix Test Suite's interface as our module touches, written for its tests, and
 * a run that calls the hooks in the order PTS was seen to call them.
 *
 * php stub.php MODULE FOLDER SUITE...: the scenario comes as JSON on stdin, a list of tests with
 * `name`, `arguments` and `trials` (the value of each, null for one that fails), and `tool`, a line of
 * shell that each trial runs; what stands in the result file at the end goes to stdout. Suites lie in
 * FOLDER/test-suites/local/.
 */

define('PTS_SAVE_RESULTS_PATH', $argv[2] . '/');
define('PTS_TEST_SUITE_PATH', $argv[2] . '/test-suites/');

class pts_module_interface {}
class pts_test_suite
{
	private $name;
	public function __construct($name) { $this->name = $name; }
	public function get_identifier() { return 'local/' . $this->name; }
}

class pts_types
{
	public static function identifier_to_object($word)
	{
		return is_dir(PTS_TEST_SUITE_PATH . 'local/' . $word) ? new pts_test_suite($word) : null;
	}
	public static function is_test_or_suite($word) { return false; }
}

class pts_math
{
	public static function arithmetic_mean($values) { return array_sum($values) / count($values); }
}

class pts_env
{
	private static $set = array();
	public static function read($name) { return isset(self::$set[$name]) ? self::$set[$name] : getenv($name); }
	public static function set($name, $value) { self::$set[$name] = $value; }
}

class pts_module_manager
{
	public static $stored = array();
	public static function var_store_add($name, $value) { self::$stored[$name] = $value; }
}

class pts_tests
{
	public static $posts = array();
	public static function call_test_script($profile, $script) { self::$posts[] = $profile->identifier . ' ' . $script; }
}

class pts_test_profile
{
	public $identifier, $title = 'stub', $scale = 'MB/s', $version = '1';
	public function __construct($identifier) { $this->identifier = $identifier; }
	public function get_identifier() { return $this->identifier; }
	public function get_install_dir() { return sys_get_temp_dir(); }
	public function get_title() { return $this->title; }
	public function get_result_scale() { return $this->scale; }
	public function set_identifier($value) { $this->identifier = $value; }
	public function set_test_title($value) { $this->title = $value; }
	public function set_result_scale($value) { $this->scale = $value; }
	public function set_version($value) { $this->version = $value; }
	public function set_result_proportion($value) {}
	public function set_display_format($value) {}
	public function set_override_values($value) {}
}

class pts_test_result_buffer
{
	public $items = array();
	public function get_buffer_items() { return $this->items; }
	public function add_buffer_item($item) { $this->items[] = $item; }
	public function add_test_result($identifier, $value, $raw = null, $json = null)
	{
		$this->items[] = new stub_item($identifier, $value, $raw, $json);
	}
}

class stub_item
{
	public $identifier, $value, $raw, $json;
	public function __construct($identifier, $value, $raw, $json)
	{
		list($this->identifier, $this->value, $this->raw, $this->json) = array($identifier, $value, $raw, $json);
	}
	public function get_result_identifier() { return $this->identifier; }
	public function get_result_value() { return $this->value; }
	public function get_result_json() { return $this->json; }
}

class pts_test_result
{
	public $test_profile, $active, $generated_result_buffers, $test_result_buffer;
	private $arguments, $description, $annotation, $parent;
	public function __construct($profile) { $this->test_profile = clone $profile; }
	public function __clone() { $this->test_profile = clone $this->test_profile; }
	public function get_arguments() { return $this->arguments; }
	public function get_arguments_description() { return $this->description; }
	public function set_used_arguments($value) { $this->arguments = $value; }
	public function set_used_arguments_description($value) { $this->description = $value; }
	public function get_annotation() { return $this->annotation; }
	public function set_annotation($value) { $this->annotation = $value; }
	public function get_parent_hash() { return $this->parent; }
	public function set_parent_hash($value) { $this->parent = $value; }
	public function get_comparison_hash($attributes, $raw)
	{
		$profile = $this->test_profile;
		return sha1(implode(',', array($profile->identifier ?: $profile->title, $this->arguments, $this->description, $profile->version, $profile->scale)));
	}
}

class pts_result_file
{
	public $results = array();
	public function get_result($hash) { return isset($this->results[$hash]) ? $this->results[$hash] : false; }
	public function get_result_object_by_hash($hash) { return $this->get_result($hash); }
	public function remove_result_object_by_id($hash, $children) { unset($this->results[$hash]); }
	public function get_xml() { return '<x/>'; }
	public function add_result_return_object($object)
	{
		$hash = $object->get_comparison_hash(true, false);
		if(isset($this->results[$hash]))
		{
			foreach($object->test_result_buffer->items as $item)
			{
				$this->results[$hash]->test_result_buffer->items[] = $item;
			}
		}
		else
		{
			$this->results[$hash] = $object;
		}
		return $this->results[$hash];
	}
}

class pts_test_run_manager
{
	protected $tests_to_run = array();
	protected $do_dynamic_run_count = true;
	protected $allow_sharing_of_results = true;
	public $result_file, $sleep_time_between_tests = 6;
	public function __construct($tests) { $this->tests_to_run = $tests; $this->result_file = new pts_result_file(); }
	public function get_tests_to_run() { return $this->tests_to_run; }
	public function get_test_to_run($k) { return $this->tests_to_run[$k]; }
	public function get_test_count() { return count($this->tests_to_run); }
	public function get_file_name() { return 'result'; }
	public function get_results_identifier() { return 'here'; }
	public function shares() { return $this->allow_sharing_of_results; }
	public static function clean_save_name($name) { return $name; }
	public static function clean_results_identifier($name) { return $name; }
}

require $argv[1];

$tests = array();
$values = $tools = array();
foreach(json_decode(stream_get_contents(STDIN), true) as $row)
{
	$test = new pts_test_result(new pts_test_profile('local/' . $row['name']));
	$test->set_used_arguments($row['arguments']);
	$test->set_used_arguments_description($row['arguments']);
	$tests[] = $test;
	$values[$row['name'] . ' ' . $row['arguments']] = $row['trials'];
	$tools[$row['name'] . ' ' . $row['arguments']] = isset($row['tool']) ? $row['tool'] : 'exec sleep 0.1';
}
mkdir($argv[2] . '/result');
$manager = new pts_test_run_manager($tests);
eeio_power::__run_manager_setup($manager);
eeio_power::__pre_run_process($manager);
$order = array();
foreach($manager->get_tests_to_run() as $request)
{
	$key = basename($request->test_profile->identifier) . ' ' . $request->get_arguments();
	$order[] = $key;
	$single = pts_env::read('FORCE_TIMES_TO_RUN') == 1;
	$trials = $single ? array(array_shift($values[$key])) : $values[$key];
	$request->active = new stdClass();
	$request->generated_result_buffers = array();
	eeio_power::__pre_test_run($request);
	$result = clone $request;
	$result->active = (object)array('results' => array());
	$result->set_used_arguments_description($request->get_arguments_description() . ' - Read');
	foreach($trials as $k => $value)
	{
		eeio_power::__calling_test_script($request);
		$process = proc_open($tools[$key], array(), $pipes);
		eeio_power::__test_running($process);
		proc_close($process);
		if($value !== null)
		{
			$request->generated_result_buffers['x'] = $result;
			$result->active->results[] = $value;
		}
		if($k < count($trials) - 1)
		{
			eeio_power::__interim_test_run($request);
		}
	}
	if($result->active->results)
	{
		eeio_power::__post_test_run_success($result);
		$result->test_result_buffer = new pts_test_result_buffer();
		$result->test_result_buffer->add_test_result('here', $result->active->results[0], implode(':', $result->active->results), array());
		$manager->result_file->add_result_return_object($result);
	}
	else
	{
		$empty = clone $request;
		$empty->test_result_buffer = new pts_test_result_buffer();
		$empty->test_result_buffer->add_test_result('here', '', '', array('error' => 'as told'));
		$manager->result_file->add_result_return_object($empty);
	}
	eeio_power::__post_test_run_process($manager->result_file);
}
eeio_power::__post_run_process($manager);
eeio_power::__event_results_process($manager);
file_put_contents($argv[2] . '/result/composite.xml', getenv('STUB_DISK_FULL') ? '<x' : $manager->result_file->get_xml());

$out = array();
foreach($manager->result_file->results as $object)
{
	foreach($object->test_result_buffer->get_buffer_items() as $item)
	{
		$out[] = array('title' => $object->test_profile->title, 'description' => $object->get_arguments_description(), 'scale' => $object->test_profile->scale, 'value' => $item->value, 'raw' => $item->raw, 'json' => $item->json, 'annotation' => $object->get_annotation());
	}
}
echo "\nRESULT " . json_encode(array('order' => $order, 'results' => $out, 'stored' => pts_module_manager::$stored, 'posts' => pts_tests::$posts, 'shares' => $manager->shares(), 'keep' => getenv('EEIO_KEEP_FILES'))) . "\n";
eeio_power::__shutdown();
