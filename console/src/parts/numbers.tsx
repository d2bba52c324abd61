import "./numbers.css";
import type { ReactNode } from "react";

const grouped = new Intl.NumberFormat();
const compact = new Intl.NumberFormat(undefined, {
  notation: "compact",
  maximumSignificantDigits: 3,
});
const percent = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });

export function exactText(value: number): string {
  return grouped.format(value);
}

export function compactText(value: number): string {
  return compact.format(value);
}

export function percentText(share: number): string {
  return percent.format(share);
}

/** Calls that did not complete, but for those whose caller left. */
export function failedOf(sums: {
  readonly failed_calls: number;
  readonly abandoned_calls: number;
}): number {
  return sums.failed_calls - sums.abandoned_calls;
}

/** A count: exact in tables, compact in tiles, with the exact one in the title. */
export function Count({
  value,
  isCompact = false,
  unit = "",
}: {
  readonly value: number | null;
  readonly isCompact?: boolean;
  readonly unit?: string;
}) {
  if (value === null) return <span className="muted">none</span>;
  const text = isCompact ? compactText(value) : exactText(value);
  return (
    <span className="number" title={isCompact ? exactText(value) : undefined}>
      {unit === "" ? text : `${text} ${unit}`}
    </span>
  );
}

/** One figure of a page, with its name and what it is of. */
export function Tile({
  name,
  children,
  note,
}: {
  readonly name: string;
  readonly children: ReactNode;
  readonly note?: ReactNode;
}) {
  return (
    <div className="card stack close">
      <span className="muted">{name}</span>
      <span className="tile-figure">{children}</span>
      {note !== undefined && <span className="muted small">{note}</span>}
    </div>
  );
}

export interface TokenCounts {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cached_input_tokens: number;
  readonly cache_write_tokens: number;
}

/** Tokens as parts of a bar: fresh input, read from the cache, written to it, output. */
export function Tokens({ counts }: { readonly counts: TokenCounts }) {
  const { input_tokens: input, cached_input_tokens: cached, cache_write_tokens: written } = counts;
  const parts = [
    { name: "fresh input", value: input - cached - written, fill: "var(--series-1)" },
    { name: "cache read", value: cached, fill: "var(--series-6)" },
    { name: "cache write", value: written, fill: "var(--series-2)" },
    { name: "output", value: counts.output_tokens, fill: "var(--series-3)" },
  ];
  const sum = input + counts.output_tokens || 1;
  const text = parts.map(({ name, value }) => `${exactText(value)} ${name}`).join(", ");
  return (
    <div className="tokens">
      <svg className="tokens-bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
        {parts.map(({ name, value, fill }, index) => {
          const before = parts.slice(0, index).reduce((total, part) => total + part.value, 0);
          const [x, width] = [(before / sum) * 100, (value / sum) * 100];
          return <rect key={name} style={{ fill }} x={x} width={width} height="6" />;
        })}
      </svg>
      <span className="small">{text}</span>
    </div>
  );
}

/** How much of a limit is used, and which scope sets the limit. */
export function LimitBar({
  name,
  used,
  limit,
  setBy,
  format = exactText,
}: {
  readonly name: string;
  readonly used: number;
  /** Null: none. */
  readonly limit: number | null;
  /** "plan standard", "account Example Ltd". */
  readonly setBy: string;
  readonly format?: (value: number) => string;
}) {
  const share = limit === null ? 0 : used / limit;
  const tone = share >= 1 ? "bad" : share >= 0.9 ? "warn" : "ok";
  const said = limit === null ? "no limit" : `of ${format(limit)} (${percentText(share)})`;
  return (
    <div className="stack close">
      <div className="row spread">
        <span>{name}</span>
        <span className="number">
          {format(used)} {said}
        </span>
      </div>
      <meter
        className={`limit-bar ${tone}`}
        aria-label={name}
        min={0}
        max={limit ?? 1}
        value={limit === null ? 0 : Math.min(used, limit)}
      />
      <span className="muted small">Set by {setBy}</span>
    </div>
  );
}
