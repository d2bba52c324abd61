import type { Overview } from "../../api/contract.ts";
import { Cost, unpricedText } from "../../parts/money.tsx";
import {
  compactText,
  Count,
  exactText,
  failedOf,
  percentText,
  Tile,
} from "../../parts/numbers.tsx";
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
  if (sums === null) return null;
  const { calls, first_event_ms: first, input_tokens: input, output_tokens: output } = sums;
  const failed = failedOf(sums);
  return (
    <Section title="The last 24 hours">
      <div className="grid tiles">
        <Tile name="Calls" note={<AppLink to="/calls">Show calls</AppLink>}>
          <Count value={calls} isCompact />
        </Tile>
        <Tile name="Failed" note={`${exactText(failed)} ${failed === 1 ? "call" : "calls"} of all`}>
          {percentText(failed / Math.max(1, calls))}
        </Tile>
        <Tile name="Tokens" note={`${compactText(input)} input, ${compactText(output)} output`}>
          <Count value={input + output} isCompact />
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
        <Tile name="Open calls" note="now">
          <Count value={openCalls ?? openAtFirst} />
        </Tile>
      </div>
    </Section>
  );
}
