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
  readonly format: (value: number) => string;
  readonly formatTime: (ms: number) => string;
  /** After a drag over a part of it; a double click gives undefined. */
  readonly onZoom?: (range: { readonly from: number; readonly to: number } | undefined) => void;
}

const slots = 6;
const dashes = [[], [6, 3], [2, 3], [8, 3, 2, 3], [12, 4], [4, 4]];

/** The drawing of a chart; loaded when the first one is shown. */
export function ChartCanvas(props: ChartProps & { readonly label: string }) {
  const place = useRef<HTMLDivElement>(null);
  const { times, series, kind, label } = props;
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
  }, [times, series, kind]);

  return (
    <>
      <div ref={place} className="chart-canvas" role="img" aria-label={label} />
      <ul className="chart-legend">
        {series.map((each) => (
          <li key={each.id}>
            <svg width="24" height="8" aria-hidden="true">
              <line
                className={`series-${slotOf(each) ?? "other"}`}
                x1="0"
                x2="24"
                y1="4"
                y2="4"
                strokeDasharray={dashOf(each).join(" ")}
              />
            </svg>
            {each.name}
          </li>
        ))}
      </ul>
    </>
  );
}

/** By the id, not by the rank, so that an entity has one colour on all pages. */
function slotOf({ id, isOther }: Series): number | undefined {
  if (isOther === true) return undefined;
  let hash = 0;
  for (const character of id) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) >>> 0;
  return (hash % slots) + 1;
}

function dashOf(series: Series): number[] {
  return dashes[(slotOf(series) ?? 1) - 1] ?? [];
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
  const { series, kind, format, formatTime, onZoom } = props;
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
      { ...axis, values: (_, ticks) => ticks.map((tick) => formatTime(tick * 1000)) },
      { ...axis, size: 64, values: (_, ticks) => ticks.map(format) },
    ],
    series: [
      {},
      ...series.map((each) => {
        const slot = slotOf(each);
        const stroke = color(slot === undefined ? "--series-other" : `--series-${slot}`);
        return {
          label: each.name,
          stroke,
          width: 2,
          dash: dashOf(each),
          spanGaps: false,
          ...(kind === "area" && { fill: `color-mix(in srgb, ${stroke} 30%, transparent)` }),
        };
      }),
    ],
    hooks: {
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < 8) return;
          const [from, to] = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
          onZoom?.({ from: from * 1000, to: to * 1000 });
        },
      ],
      ready: [(plot) => plot.over.addEventListener("dblclick", () => onZoom?.(undefined))],
    },
  };
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
