package main

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/fleetquota/fleetquota/hack/e2e/bench/curve"
)

// draw is the chart as an SVG.
func (c *chart) draw(dir string) ([]byte, error) {
	const width, height = 15 * vg.Centimeter, 9 * vg.Centimeter
	table, err := curve.Read(filepath.Join(dir, c.table))
	if err != nil {
		return nil, err
	}
	p := plot.New()
	p.Add(grid()) // below the lines
	for _, l := range c.lines {
		if err := c.add(p, &table, l); err != nil {
			return nil, err
		}
	}
	c.furnish(p)
	canvas := vgsvg.New(width, height)
	const margin = 3 * vg.Millimeter
	all := draw.New(canvas)
	all.SetColor(color.White)
	all.Fill(all.Path()) // behind the margin too, where the page is dark
	const foot = 2 * vg.Millimeter
	p.Draw(draw.Crop(all, margin, -2*margin, margin+foot, -margin))
	sign(all, vg.Point{X: width / 2, Y: margin / 2}, table.Machine)
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, err
	}
	// Where the font is not installed, one that is as wide must do.
	const family = "font-family:Liberation Sans"
	return bytes.ReplaceAll(out.Bytes(), []byte(family), []byte(family+", Arial, Helvetica, sans-serif")), nil
}

// sign says at the foot where the measurements are from.
func sign(c draw.Canvas, at vg.Point, machine string) {
	const size = 7
	style := text.Style{Color: color.Gray{Y: 90}, XAlign: draw.XCenter, Handler: plot.DefaultTextHandler}
	write(&style, size)
	c.FillText(style, at, machine)
}

func grid() *plotter.Grid {
	g := plotter.NewGrid()
	g.Horizontal.Color, g.Vertical.Color = color.Gray{Y: 220}, color.Gray{Y: 235}
	return g
}

// add draws one line.
func (c *chart) add(p *plot.Plot, table *curve.Table, l line) error {
	column := slices.Index(table.Figures, l.figure)
	if column < 0 {
		return fmt.Errorf("%s has no figure %q", c.table, l.figure)
	}
	var points plotter.XYs
	for _, row := range table.Rows {
		if value := row.Values[column]; !math.IsNaN(value) {
			points = append(points, plotter.XY{X: row.Size, Y: value})
		}
	}
	drawn, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return fmt.Errorf("figure %q of %s: %w", l.figure, c.table, err)
	}
	drawn.LineStyle, marks.GlyphStyle = l.style.looks()
	p.Add(drawn, marks)
	p.Legend.Add(l.says, drawn, marks)
	return nil
}

// looks is the line and the mark of a style.
func (s style) looks() (draw.LineStyle, draw.GlyphStyle) {
	const width, radius = 1.6, 3
	const dash, gap, dot = 6, 3, 1.5
	blue, orange := color.NRGBA{R: 11, G: 83, B: 148, A: 255}, color.NRGBA{R: 180, G: 71, B: 10, A: 255}
	l := draw.LineStyle{Color: blue, Width: vg.Points(width)}
	g := draw.GlyphStyle{Color: blue, Radius: vg.Points(radius), Shape: draw.CircleGlyph{}}
	switch s {
	case ours:
	case more:
		l.Dashes, g.Shape = []vg.Length{vg.Points(dash), vg.Points(gap)}, draw.BoxGlyph{}
	case theirs:
		l.Dashes, g.Shape = []vg.Length{vg.Points(dot), vg.Points(gap)}, draw.PyramidGlyph{}
		l.Color, g.Color = orange, orange
	}
	return l, g
}

// furnish draws what is around the lines.
func (c *chart) furnish(p *plot.Plot) {
	const large, small, pad = 13, 10, 6
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.x, c.y
	p.Title.Padding = vg.Points(pad)
	write(&p.Title.TextStyle, large)
	for _, style := range []*text.Style{&p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		write(style, small)
	}
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding, p.Legend.XOffs, p.Legend.YOffs = vg.Points(2), vg.Points(pad), vg.Points(-pad)
	p.Legend.ThumbnailWidth = vg.Points(28)
	c.scale(p)
}

func write(style *text.Style, size float64) {
	style.Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(size)}
}

// scale sets both axes. A line that is nowhere near the top leaves room for the
// legend.
func (c *chart) scale(p *plot.Plot) {
	const room, roomLog = 1.35, 3
	p.X.Tick.Marker, p.Y.Tick.Marker = evenly{count}, evenly{c.label}
	if c.logX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, powers{count}
	} else {
		p.X.Min = 0
	}
	if c.logY {
		p.Y.Min = math.Pow10(int(math.Floor(math.Log10(p.Y.Min))))
		p.Y.Max = math.Pow10(int(math.Ceil(math.Log10(p.Y.Max * roomLog))))
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, powers{c.label}
		return
	}
	p.Y.Min, p.Y.Max = 0, p.Y.Max*room
}

// powers marks the powers of ten, and with smaller marks what is between.
type powers struct{ label func(float64) string }

// Ticks is for plot.Ticker.
func (t powers) Ticks(least, most float64) []plot.Tick {
	const base, slack = 10, 1.0001
	var ticks []plot.Tick
	for power := math.Pow10(int(math.Floor(math.Log10(least)))); power <= most*slack; power *= base {
		for digit := 1.0; digit < base; digit++ {
			value := digit * power
			if value*slack < least || value > most*slack {
				continue
			}
			tick := plot.Tick{Value: value}
			if digit == 1 {
				tick.Label = t.label(value)
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

// evenly marks round numbers.
type evenly struct{ label func(float64) string }

// Ticks is for plot.Ticker.
func (t evenly) Ticks(least, most float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(least, most)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = t.label(ticks[i].Value)
		}
	}
	return ticks
}

// count is a number with a comma after each three digits.
func count(value float64) string {
	const three = 3
	digits := plain(value)
	whole := len(strconv.FormatInt(int64(value), 10))
	for at := whole - three; at > 0; at -= three {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
