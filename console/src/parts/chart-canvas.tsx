import "uplot/dist/uPlot.min.css";
import { useEffect, useRef } from "react";
import UPlot from "uplot";

export interface Series {
  /** Decides its colour, which stays the same on all pages. */
  readonly id: string;
  readonly name: string;
  /** One a time; null: a gap. */
  readonly values: readonly (number | null)[];
  readonly isOther?: boolean;
}

export interface ChartProps {
  /** What is shown, with its unit: "Tokens a minute". */
  readonly title: string;
  /** Beginnings of the steps, as milliseconds, ascending. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  /** `area`: parts of a sum, stacked. `line`: percentiles and all else. */
  readonly kind: "area" | "line";
  /** The last step is not over: it is hatched. */
  readonly isLastOpen?: boolean;
  readonly format: (value: number) => string;
  readonly formatTime: (ms: number) => string;
  /** Of the axis; default: `formatTime`. */
  readonly formatTick?: (ms: number) => string;
  /** After a drag over a part of it; a double click gives undefined. */
  readonly onZoom?: (range: { readonly from: number; readonly to: number } | undefined) => void;
}

/** Beyond these, points would hide their line. */
const mostPoints = 60;
const dashes = [[], [6, 3], [2, 3], [8, 3, 2, 3], [12, 4], [4, 4]];

/** The drawing of a chart; loaded when the first one is shown. */
export function ChartCanvas(props: ChartProps & { readonly label: string }) {
  const place = useRef<HTMLDivElement>(null);
  const { times, series, kind, isLastOpen, label } = props;
  const slots = slotsOf(series);
  const latest = useRef(props);
  latest.current = props;

  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const plot = new UPlot(optionsOf(latest.current, element), dataOf(latest.current), element);
    const resized = new ResizeObserver(() =>
      plot.setSize({ width: element.clientWidth, height: element.clientHeight }),
    );
    resized.observe(element);
    return () => {
      resized.disconnect();
      plot.destroy();
    };
  }, [times, series, kind, isLastOpen]);

  return (
    <>
      <div ref={place} className="chart-canvas" role="img" aria-label={label} />
      <ul className="chart-legend">
        {series.map((each) => (
          <li key={each.id}>
            <svg width="24" height="8" aria-hidden="true">
              <line
                stroke={`var(${colorOf(each, slots)})`}
                x1="0"
                x2="24"
                y1="4"
                y2="4"
                strokeDasharray={dashOf(slots.get(each)).join(" ")}
              />
            </svg>
            {each.name}
          </li>
        ))}
        {kind === "area" && series.length > 1 && <li className="muted">stacked: the top is all</li>}
        {isLastOpen === true && <li className="muted">hatched: not over yet</li>}
      </ul>
    </>
  );
}

/**
 * Colours by the id, not by the rank, so that an entity has one colour on all pages; where two of a
 * chart would have the same, the second gets the next that is free. "Other" has none.
 */
function slotsOf(series: readonly Series[]): ReadonlyMap<Series, number> {
  const slots = new Map<Series, number>();
  const free = new Set(dashes.keys());
  for (const each of series.filter(({ isOther }) => isOther !== true)) {
    let slot = outcomeLooks.get(each.id)?.slot ?? hashOf(each.id) % dashes.length;
    while (free.size > 0 && !free.has(slot)) slot = (slot + 1) % dashes.length;
    free.delete(slot);
    slots.set(each, slot + 1);
  }
  return slots;
}

/** What says by itself whether it is good. A solid line hides a dashed one where both are equal. */
const outcomeLooks = new Map([
  ["completed", { color: "--accent", slot: 0 }],
  ["failed", { color: "--bad", slot: 1 }],
]);

function colorOf(series: Series, slots: ReadonlyMap<Series, number>): string {
  return outcomeLooks.get(series.id)?.color ?? `--series-${slots.get(series) ?? "other"}`;
}

function hashOf(id: string): number {
  let hash = 0;
  for (const character of id) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) >>> 0;
  return hash;
}

function dashOf(slot = 1): number[] {
  return dashes[slot - 1] ?? [];
}

/** In the form of uPlot; areas are stacked, the first on top. */
function dataOf({ times, series, kind }: ChartProps): UPlot.AlignedData {
  const seconds = times.map((time) => time / 1000);
  if (kind === "line") return [seconds, ...series.map(({ values }) => [...values])];
  const sums = times.map(() => 0);
  const stacked = series.toReversed().map(({ values }) =>
    values.map((value, index) => {
      sums[index] = (sums[index] ?? 0) + (value ?? 0);
      return sums[index] ?? 0;
    }),
  );
  return [seconds, ...stacked.toReversed()];
}

function optionsOf(props: ChartProps, element: HTMLElement): UPlot.Options {
  const { series, kind, format, formatTime, onZoom, times, isLastOpen = false } = props;
  const { formatTick = formatTime } = props;
  const slots = slotsOf(series);
  const color = (name: string): string => resolved(element, name);
  const axis = { stroke: color("--muted"), grid: { stroke: color("--divider"), width: 1 } };
  return {
    width: element.clientWidth,
    height: element.clientHeight,
    legend: { show: false },
    cursor: {
      sync: { key: "sluice" },
      drag: { x: onZoom !== undefined, y: false, setScale: false },
    },
    scales: { y: { range: (_, _least, most) => [0, most === 0 ? 1 : most * 1.05] } },
    axes: [
      { ...axis, space: 104, values: (_, ticks) => ticks.map((tick) => formatTick(tick * 1000)) },
      { ...axis, size: 64, values: (_, ticks) => ticks.map(format) },
    ],
    series: [
      {},
      ...series.map((each) => {
        const stroke = color(colorOf(each, slots));
        return {
          label: each.name,
          stroke,
          width: 2,
          dash: dashOf(slots.get(each)),
          spanGaps: false,
          // A point between gaps would not be seen, nor would a single one.
          points: { show: (kind === "line" && times.length <= mostPoints) || times.length === 1 },
          ...(kind === "area" && { fill: `color-mix(in srgb, ${stroke} 30%, transparent)` }),
        };
      }),
    ],
    // Each area ends where the next one begins.
    ...(kind === "area" && {
      bands: series.slice(1).map((_, index) => ({ series: [index + 1, index + 2] as const })),
    }),
    hooks: {
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < 8) return;
          const [from, to] = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
          onZoom?.({ from: from * 1000, to: to * 1000 });
        },
      ],
      draw: [(plot) => isLastOpen && hatch(plot, times, color("--control"))],
      ready: [(plot) => plot.over.addEventListener("dblclick", () => onZoom?.(undefined))],
    },
  };
}

/** Marks the part of the chart that leads to the last point. */
function hatch(plot: UPlot, times: readonly number[], color: string): void {
  const { ctx, bbox } = plot;
  const [before, last] = times.slice(-2).map((time) => plot.valToPos(time / 1000, "x", true));
  if (before === undefined || last === undefined) return;
  ctx.save();
  ctx.beginPath();
  ctx.rect(before, bbox.top, last - before, bbox.height);
  ctx.clip();
  ctx.beginPath();
  for (let x = before - bbox.height; x < last; x += 8 * devicePixelRatio) {
    ctx.moveTo(x, bbox.top + bbox.height);
    ctx.lineTo(x + bbox.height, bbox.top);
  }
  ctx.setLineDash([]);
  ctx.strokeStyle = color;
  ctx.globalAlpha = 0.5;
  ctx.stroke();
  ctx.restore();
}

/** A canvas does not know custom properties. */
function resolved(element: HTMLElement, name: string): string {
  const probe = document.createElement("span");
  probe.style.setProperty("color", `var(${name})`);
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
