import type { Overview } from "../../api/contract.ts";
import { Cost, unpricedText } from "../../parts/money.tsx";
import { Count, failedOf, percentText, Tile } from "../../parts/numbers.tsx";
import { durationText } from "../../parts/time.tsx";
import { AppLink } from "../../parts/button.tsx";
import { Section } from "../../parts/page.tsx";

/** What happened in the last 24 hours, and how many calls are open now. */
export function DayFigures({
  view: { sums, open_calls: openAtFirst },
  openCalls,
}: {
  readonly view: Overview;
  /** Undefined until live numbers are known. */
  readonly openCalls: number | undefined;
}) {
  const open = (
    <Tile name="Open calls" note="now">
      <Count value={openCalls ?? openAtFirst} />
    </Tile>
  );
  if (sums === null) return null;
  const { calls, first_event_ms: first } = sums;
  const failed = failedOf(sums);
  return (
    <Section title="The last 24 hours">
      <div className="grid tiles">
        <Tile name="Calls" note={<AppLink to="/calls">Show calls</AppLink>}>
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
        <Tile name="Cost" note={unpricedText(sums.unpriced_calls)}>
          <Cost usd={sums.cost_usd} unpricedCalls={sums.unpriced_calls} />
        </Tile>
        {open}
      </div>
    </Section>
  );
}
