import type { CallRow, KeyView, RotatedKey } from "../../api/contract.ts";
import { useList } from "../../api/use-read.ts";
import { Ask } from "../../parts/dialog.tsx";
import { ChangeDialog } from "../../parts/form.tsx";
import { Loaded } from "../../parts/page.tsx";
import { exactText } from "../../parts/numbers.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";

interface LeakedKeyProps {
  readonly view: KeyView;
  readonly onCreated: (answer: RotatedKey) => void;
}

/** The other way to a new secret: the old ones end at once, in use or not. */
export function LeakedKey(props: LeakedKeyProps) {
  return (
    <section className="note stack tight bad" aria-label="The key leaked">
      <h2>The key leaked?</h2>
      <p>
        Then there is no overlap: all its secrets end now, and applications wait for the new one.
      </p>
      <Ask text="End all secrets now..." look="danger">
        <LeakedDialog {...props} />
      </Ask>
    </section>
  );
}

function LeakedDialog({ view, onCreated }: LeakedKeyProps) {
  const calls = useList("/usage/calls", { key_id: view.id, since: "24h", limit: 20 });
  return (
    <ChangeDialog
      title="End all secrets now"
      submit="End all secrets and create one"
      isDanger
      change="POST /keys/{id}/rotate"
      body={{ compromised: true }}
      parameters={{ id: view.id }}
      onDone={onCreated}
    >
      <p>Look whether you know these calls of the last 24 hours, the newest first.</p>
      <Loaded query={calls.query}>
        {(rows) =>
          rows.length === 0 ? (
            <p>There were none.</p>
          ) : (
            <Table caption="Last calls" columns={columns} rows={rows} idOf={({ id }) => id} />
          )
        }
      </Loaded>
    </ChangeDialog>
  );
}

const columns: readonly Column<CallRow>[] = [
  ["Time", ({ started_at: at }) => <Time at={at} />],
  ["Model", ({ model }) => model],
  ["Tokens", (call) => exactText(call.input_tokens + call.output_tokens), "number"],
  ["Status", ({ status, code }) => `${status} ${code ?? ""}`, "wide"],
];
