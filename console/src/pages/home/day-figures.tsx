import { Link } from "wouter";
import type { Overview } from "../../api/contract.ts";
import { Count, percentText, Tile } from "../../parts/numbers.tsx";
import { durationText } from "../../parts/time.tsx";
import { useHref } from "../../url.ts";

/** What happened in the last 24 hours, and how many calls are open now. */
export function DayFigures({
  view: { sums, open_calls: openAtFirst },
  openCalls,
}: {
  readonly view: Overview;
  /** Undefined until live numbers are known. */
  readonly openCalls: number | undefined;
}) {
  const href = useHref();
  const open = (
    <Tile name="Open calls" note="now">
      <Count value={openCalls ?? openAtFirst} />
    </Tile>
  );
  if (sums === null) return null;
  const { calls, failed_calls: failed, first_event_ms: first } = sums;
  return (
    <section className="stack tight" aria-label="The last 24 hours">
      <h2>The last 24 hours</h2>
      <div className="grid tiles">
        <Tile name="Calls" note={<Link href={href("/calls")}>Show calls</Link>}>
          <Count value={calls} isCompact />
        </Tile>
        <Tile
          name="Failed"
          note={
            <>
              <Count value={failed} unit={failed === 1 ? "call" : "calls"} /> of all
            </>
          }
        >
          {percentText(failed / Math.max(1, calls))}
        </Tile>
        <Tile
          name="Tokens"
          note={
            <>
              <Count value={sums.input_tokens} isCompact unit="input" />,{" "}
              <Count value={sums.output_tokens} isCompact unit="output" />
            </>
          }
        >
          <Count value={sums.input_tokens + sums.output_tokens} isCompact />
        </Tile>
        <Tile
          name="First event, median"
          note={first === null ? undefined : `95 % within ${durationText(first.p95)}`}
        >
          {first === null ? "none" : durationText(first.p50)}
        </Tile>
        {open}
      </div>
    </section>
  );
}
