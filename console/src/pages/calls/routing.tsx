import type { RoutingView } from "../../api/contract.ts";
import { Badge } from "../../parts/badge.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { durationText } from "../../parts/time.tsx";

type Candidate = RoutingView["candidates"][number] & { readonly rank: number };
type Attempt = RoutingView["attempts"][number] & { readonly rank: number };

/** Which targets were possible, and what became of each attempt. */
export function Routing({ routing }: { readonly routing: RoutingView }) {
  const candidates = routing.candidates.map((each, index) => ({ ...each, rank: index + 1 }));
  const attempts = routing.attempts.map((each, index) => ({ ...each, rank: index + 1 }));
  return (
    <section className="stack" aria-label="Routing">
      <div className="stack tight">
        <h2>Attempts</h2>
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
      </div>
      {candidates.length > 0 && (
        <div className="stack tight">
          <h2>Targets, in order of preference</h2>
          <Table
            caption="Targets"
            columns={candidateColumns}
            rows={candidates}
            idOf={({ rank }) => String(rank)}
          />
        </div>
      )}
    </section>
  );
}

const candidateColumns: readonly Column<Candidate>[] = [
  { title: "Target", cell: ({ rank, target }) => `${rank}. ${target === "-" ? "all" : target}` },
  { title: "Model", cell: ({ model }) => model },
  { title: "Why here", cell: ({ why }) => why },
];

const attemptColumns: readonly Column<Attempt>[] = [
  { title: "Target", cell: ({ rank, target }) => `${rank}. ${target}` },
  { title: "Model", cell: ({ model }) => model, isWideOnly: true },
  { title: "Began after", cell: ({ start_ms: ms }) => durationText(ms), isNumber: true },
  { title: "Took", cell: ({ duration_ms: ms }) => durationText(ms), isNumber: true },
  {
    title: "Outcome",
    cell: ({ outcome, may_be_billed: isBilled }) => (
      <>
        <Badge tone={outcome === "answered" ? "ok" : outcome === "given-up" ? "plain" : "bad"}>
          {outcome}
        </Badge>
        {/* The answer itself is what the call is billed for. */}
        {isBilled && outcome !== "answered" && " may be billed"}
      </>
    ),
  },
  { title: "Then", cell: ({ decision }) => decision ?? "" },
];
