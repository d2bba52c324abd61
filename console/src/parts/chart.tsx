import "./chart.css";
import { lazy, Suspense, useState } from "react";
import { Button } from "./button.tsx";
import type { ChartProps } from "./chart-canvas.tsx";
import { type Column, Table } from "./table.tsx";

/** Series beyond these are drawn as "Other". */
export const mostSeries = 6;

const ChartCanvas = lazy(() =>
  import("./chart-canvas.tsx").then(({ ChartCanvas: Canvas }) => ({ default: Canvas })),
);

/** A chart, a sentence that says the same, and a table of its figures. */
export function Chart(props: ChartProps) {
  const { title, times, series, format, formatTime } = props;
  const [isTable, setTable] = useState(false);
  const columns: readonly Column<number>[] = [
    ["Time", (index: number) => formatTime(times[index] ?? 0)],
    ...series.map(({ name, values }): Column<number> => [
      name,
      (index: number) => cellText(values[index], format),
      "number",
    ]),
  ];
  return (
    <figure className="stack tight">
      <div className="row spread">
        <figcaption>
          <h2>{title}</h2>
          <p className="muted small">{summary(props)}</p>
        </figcaption>
        <Button look="quiet" aria-pressed={isTable} onPress={() => setTable(!isTable)}>
          {isTable ? "Show as chart" : "Show as table"}
        </Button>
      </div>
      {isTable ? (
        <Table
          caption={title}
          columns={columns}
          rows={times.map((_, index) => index)}
          idOf={(index) => String(times[index])}
        />
      ) : (
        <Suspense fallback={<div className="chart-canvas" />}>
          <ChartCanvas {...props} label={`${title}. ${summary(props)}`} />
        </Suspense>
      )}
    </figure>
  );
}

function cellText(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? "" : format(value);
}

/** The last and the highest figure of each series, in words. */
function summary({ series, format }: Pick<ChartProps, "series" | "format">): string {
  const sentences = series.map(({ name, values }) => {
    const known = values.filter((value) => value !== null);
    const last = known.at(-1);
    if (last === undefined) return `${name}: nothing`;
    return `${name}: last ${format(last)}, highest ${format(Math.max(...known))}`;
  });
  return sentences.length === 0 ? "Nothing in this range." : `${sentences.join("; ")}.`;
}
