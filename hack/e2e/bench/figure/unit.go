package figure

// Unit is what a value is in.
type Unit int

// The units.
const (
	Nanoseconds Unit = iota // the text is in what suits
	Bytes
	Mebibytes // of values that are in bytes
	Percent   // of values that are parts of one
	PerSecond
	PerMinute
	Factor // so many times as much
)

// Text writes a value for people.
func (u Unit) Text(value float64) string {
	const kilo, mebi, whole = 1000, 1 << 20, 100
	switch u {
	case Nanoseconds:
		return duration(value)
	case Bytes:
		if value >= kilo {
			return digits(value/kilo) + " KB"
		}
		return digits(value) + " B"
	case Mebibytes:
		return digits(value/mebi) + " MiB"
	case Percent:
		return digits(value*whole) + "%"
	case PerSecond:
		return digits(value) + "/s"
	case PerMinute:
		return digits(value) + "/min"
	case Factor:
		return digits(value) + "x"
	}
	return digits(value)
}

func duration(value float64) string {
	for _, scale := range []struct {
		size   float64
		symbol string
	}{{1e9, " s"}, {1e6, " ms"}, {1e3, " us"}} {
		if value >= scale.size {
			return digits(value/scale.size) + scale.symbol
		}
	}
	return digits(value) + " ns"
}

// benchmark is the unit as Go's benchmarks name it. benchstat knows of some whether
// more is worse, and takes any other for a number like them.
func (u Unit) benchmark() string {
	switch u {
	case Nanoseconds:
		return "ns/op"
	case Bytes, Mebibytes:
		return "B"
	case Percent:
		return "cores"
	case PerSecond:
		return "per-second"
	case PerMinute:
		return "per-minute"
	case Factor:
		return "times"
	}
	return "value"
}
