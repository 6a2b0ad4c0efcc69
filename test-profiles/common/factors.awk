# Checks the arguments of a run as factors.conf describes them. Prints assignments for the shell, or `refuse MESSAGE`.
# For factors.sh. src/eeio/measure/profiles/factors.py reads the same file, and a test compares both.
function quoted(text,   parts, count, i, made) {
	count = split(text, parts, "\047")
	made = count ? parts[1] : ""
	for (i = 2; i <= count; i++) made = made "\047\\\047\047" parts[i]
	return "\047" made "\047"
}

function refuse(message) {
	print "refuse " quoted(message)
	exit
}

function in_list(text, list) { return index(text, ",") == 0 && index("," list ",", "," text ",") > 0 }

function bytes_of(size) {
	if (size ~ /k$/) return size * 1024
	if (size ~ /m$/) return size * 1048576
	if (size ~ /g$/) return size * 1073741824
	return size + 0
}

function is_size(text) { return text ~ /^[1-9][0-9]*[kmg]?$/ && length(text) - (text ~ /[kmg]$/) <= 14 }

function is_number(text) { return text ~ /^(0|[1-9][0-9]*)$/ && length(text) <= 18 }

# What is wrong with a value of a factor; empty if it is allowed.
function problem(name, text,   ends, number, step, allowed) {
	if ((name, text) in never) return never[name, text]
	if (kind[name] == "text" || ((name, "or") in option && option[name, "or"] "" == text "")) return ""
	if (kind[name] == "words") {
		if (text != "" && in_list(text, values[name])) return ""
		allowed = values[name]
		gsub(/,/, " ", allowed)
		return name "=" text ": give one of: " allowed
	}
	split(values[name], ends, "[.][.]")
	if (kind[name] == "number") {
		if (is_number(text) && text + 0 >= ends[1] + 0 && text + 0 <= ends[2] + 0) return ""
		return name "=" text ": give a whole number from " ends[1] " to " ends[2]
	}
	if (!is_size(text)) return name "=" text ": give a size such as 4k, 32k, 4m or 20g"
	step = option[name, "step"]
	number = bytes_of(text)
	if (number >= bytes_of(ends[1]) && number <= bytes_of(ends[2]) && (step == "" || number % bytes_of(step) == 0)) return ""
	return name "=" text ": give " ((name, "or") in option ? option[name, "or"] ", or " : "") \
		(step == "" ? "a size" : "a multiple of " step) " from " ends[1] " to " ends[2]
}

function check(name, text,   wrong) {
	wrong = problem(name, text)
	if (wrong != "") refuse(wrong)
	value[name] = text ""
}

# A whole number, or the value of a factor, a size in bytes.
function operand(text) {
	if (!(text in kind)) return text + 0
	return kind[text] == "size" ? bytes_of(value[text]) : value[text] + 0
}

# Of * / and %, from left to right, in whole numbers. A division by 0 is 0.
function calculated(text,   number, sign, length_of, next_number) {
	while (text != "") {
		length_of = match(text, /[*\/%]/) ? RSTART - 1 : length(text)
		next_number = operand(substr(text, 1, length_of))
		if (sign == "*" || (sign != "" && next_number == 0)) number *= next_number
		else if (sign == "/") number = int(number / next_number)
		else if (sign == "%") number %= next_number
		else number = next_number
		sign = substr(text, length_of + 1, 1)
		text = substr(text, length_of + 2)
	}
	return number
}

function is_true(term,   left, sign, right) {
	if (term ~ /^program:[a-z0-9-]+$/) return system("command -v " substr(term, 9) " >/dev/null 2>&1") == 0
	match(term, /(!=|>=|<=|=)/)
	left = substr(term, 1, RSTART - 1)
	sign = substr(term, RSTART, RLENGTH)
	right = substr(term, RSTART + RLENGTH)
	if (sign == ">=") return calculated(left) >= calculated(right)
	if (sign == "<=") return calculated(left) <= calculated(right)
	if (left ~ /[*\/%]/) return (calculated(left) == calculated(right)) == (sign == "=")
	return in_list(value[left], right) == (sign == "=")
}

# A text with the values of the factors in it that are in braces.
function filled(text,   made, name) {
	made = ""
	while (match(text, /[{][a-z][a-z0-9_]*[}]/)) {
		name = substr(text, RSTART + 1, RLENGTH - 2)
		made = made substr(text, 1, RSTART - 1) value[name]
		text = substr(text, RSTART + RLENGTH)
	}
	return made text
}

function read_line(line,   bar, text, fields, count, i, pair, is_required) {
	bar = index(line, "|")
	text = bar ? substr(line, bar + 1) : ""
	sub(/^ +/, "", text)
	count = split(bar ? substr(line, 1, bar - 1) : line, fields)
	if (count == 0 || fields[1] ~ /^#/) return
	if (fields[1] == "prefix") prefix = fields[2]
	else if (fields[1] == "never") {
		split(fields[2], pair, "=")
		never[pair[1], pair[2]] = text
	} else if (fields[1] == "when" || fields[1] == "require") {
		message[++steps] = text
		for (i = 1; i <= count; i++) {
			if (fields[i] == "set") target[steps] = fields[++i]
			else if (fields[i] == "require") is_required = 1
			else if (fields[i] != "when" && !is_required) when[steps] = when[steps] " " fields[i]
			else if (fields[i] != "when") required[steps] = required[steps] " " fields[i]
		}
	} else {
		names[++factors] = fields[1]
		kind[fields[1]] = fields[2]
		values[fields[1]] = fields[3]
		for (i = 4; i <= count; i++) {
			bar = index(fields[i] "=", "=")
			option[fields[1], substr(fields[i], 1, bar - 1)] = substr(fields[i], bar + 1)
		}
	}
}

# With EEIO_WORK=SIZE a run moves that much of a file, however long it takes.
function read_preset(line,   fields, count, i, key, text) {
	count = split(line, fields)
	if (fields[1] "" != preset "") return
	for (i = 2; i <= count; i++) {
		key = substr(fields[i], 1, index(fields[i], "=") - 1)
		text = substr(fields[i], index(fields[i], "=") + 1)
		if (ENVIRON["EEIO_WORK"] != "" && key == "file_size") text = ENVIRON["EEIO_WORK"]
		if (ENVIRON["EEIO_WORK"] != "" && key == "runtime_s") text = 0
		of_preset[key] = text
		if (key ~ /^[a-z][a-z0-9_]*$/) print "preset_" key "=" quoted(text)
	}
}

function read_arguments(   i, name, known) {
	for (i = 1; i <= factors; i++) if (!((names[i], "unlisted") in option)) known = known " " names[i]
	for (i = 1; i < ARGC; i++) {
		name = substr(ARGV[i], 1, index(ARGV[i], "=") - 1)
		if (!(name in kind)) refuse("unknown factor \047" ARGV[i] "\047: known are" known)
		check(name, substr(ARGV[i], length(name) + 2))
	}
}

function add_values(   i, name) {
	for (i = 1; i <= factors; i++) {
		name = names[i]
		if (name in value) continue
		if (!((name, "preset") in option)) value[name] = option[name, "default"] ""
		else if (of_preset[name] != "") check(name, of_preset[name])
		else if ((name, "optional") in option) value[name] = ""
		else refuse("EEIO_PRESET=" preset ": not in " presets)
	}
}

function holds(terms,   list, count, i) {
	count = split(terms, list)
	for (i = 1; i <= count; i++) if (!is_true(list[i])) return 0
	return 1
}

function follow(   i, name) {
	for (i = 1; i <= steps; i++) {
		if (!holds(when[i])) continue
		if (!holds(required[i])) refuse(filled(message[i]))
		if (target[i] == "") continue
		name = substr(target[i], 1, index(target[i], "=") - 1)
		value[name] = filled(substr(target[i], length(name) + 2))
	}
}

BEGIN {
	preset = ENVIRON["EEIO_PRESET"] == "" ? "standard" : ENVIRON["EEIO_PRESET"]
	file = ENVIRON["HOME"] "/factors.conf"
	presets = ENVIRON["HOME"] "/presets.conf"
	while ((getline line < file) > 0) read_line(line)
	if (!factors) refuse(file ": not there, or without factors")
	while ((getline line < presets) > 0) read_preset(line)
	read_arguments()
	add_values()
	follow()
	for (i = 1; i <= factors; i++) {
		name = names[i]
		print prefix name "=" quoted(value[name])
		if (kind[name] == "size") print prefix name "_bytes=" (value[name] == "" ? "" : sprintf("%.0f", bytes_of(value[name])))
	}
	exit
}
