import type { RoutingView } from "../../api/contract.ts";
import { Badge } from "../../parts/badge.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { durationText } from "../../parts/time.tsx";
import { Section } from "../../parts/page.tsx";

type Candidate = RoutingView["candidates"][number] & { readonly rank: number };
type Attempt = RoutingView["attempts"][number] & { readonly rank: number };

/** Which targets were possible, and what became of each attempt. */
export function Routing({ routing }: { readonly routing: RoutingView }) {
  const candidates = routing.candidates.map((each, index) => ({ ...each, rank: index + 1 }));
  const attempts = routing.attempts.map((each, index) => ({ ...each, rank: index + 1 }));
  return (
    <>
      <Section title="Attempts">
        {attempts.length === 0 ? (
          <p className="muted">No target was tried.</p>
        ) : (
          <Table
            caption="Attempts"
            columns={attemptColumns}
            rows={attempts}
            idOf={({ rank }) => String(rank)}
          />
        )}
      </Section>
      {candidates.length > 0 && (
        <Section title="Targets, in order of preference">
          <Table
            caption="Targets"
            columns={candidateColumns}
            rows={candidates}
            idOf={({ rank }) => String(rank)}
          />
        </Section>
      )}
    </>
  );
}

const candidateColumns: readonly Column<Candidate>[] = [
  ["Target", ({ rank, target }) => `${rank}. ${target === "-" ? "all" : target}`],
  ["Model", ({ model }) => model],
  ["Why here", ({ why }) => why],
];

const attemptColumns: readonly Column<Attempt>[] = [
  ["Target", ({ rank, target }) => `${rank}. ${target}`],
  ["Model", ({ model }) => model, "wide"],
  ["Began after", ({ start_ms: ms }) => durationText(ms), "number"],
  ["Took", ({ duration_ms: ms }) => durationText(ms), "number"],
  [
    "Outcome",
    ({ outcome, may_be_billed: isBilled }) => (
      <>
        <Badge tone={outcome === "answered" ? "ok" : outcome === "given-up" ? "plain" : "bad"}>
          {outcome}
        </Badge>
        {/* The answer itself is what the call is billed for. */}
        {isBilled && outcome !== "answered" && " may be billed"}
      </>
    ),
  ],
  ["Then", ({ decision }) => decision ?? ""],
];
