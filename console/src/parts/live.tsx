import { type ReactNode, useEffect, useState } from "react";
import { useLostAt, useStale } from "../api/live.ts";
import { Badge } from "./badge.tsx";
import { Button } from "./button.tsx";
import { ago } from "./time.tsx";

/** Whether what is shown changes by itself at the moment. */
export function LiveMark({ isKnown }: { readonly isKnown: boolean }) {
  const lostAt = useLostAt();
  const stale = useStale();
  if (lostAt !== undefined) return <Badge tone="warn">not live since {ago(lostAt)}</Badge>;
  if (stale.length > 0) return <Badge tone="warn">{stale.join(", ")}: earlier numbers</Badge>;
  return isKnown ? <Badge tone="ok">live</Badge> : <Badge tone="plain">connecting</Badge>;
}

/**
 * Rows that change by themselves stay where they are while the pointer or the focus is on them,
 * until the user asks for the new ones.
 */
export function Held<Row>({
  rows,
  idOf,
  children,
}: {
  readonly rows: readonly Row[];
  readonly idOf: (row: Row) => string;
  readonly children: (rows: readonly Row[]) => ReactNode;
}) {
  const [held, setHeld] = useState<readonly Row[]>();
  const hold = (): void => setHeld((now) => now ?? rows);
  const release = (): void => setHeld(undefined);
  const hasMoved = held !== undefined && held.map(idOf).join("\n") !== rows.map(idOf).join("\n");
  return (
    <div
      className="stack tight"
      onPointerEnter={hold}
      onPointerLeave={release}
      onFocus={hold}
      onBlur={release}
    >
      {children(hasMoved ? held : rows)}
      {hasMoved && <Button onPress={() => setHeld(rows)}>Show what has changed</Button>}
    </div>
  );
}

/** How many seconds are left until a time: "for 12 s more". */
export function Countdown({ until, over }: { readonly until: string; readonly over: string }) {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  const left = Math.ceil((Date.parse(until) - now) / 1_000);
  return <span className="number">{left > 0 ? `for ${left} s more` : over}</span>;
}
