import { useState } from "react";
import type { CallRow, KeyView, RotatedKey } from "../../api/contract.ts";
import { useChange } from "../../api/use-change.ts";
import { useList } from "../../api/use-read.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Form } from "../../parts/form.tsx";
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
  const [isOpen, setOpen] = useState(false);
  return (
    <section className="note bad" aria-label="The key leaked">
      <h2>The key leaked?</h2>
      <p>
        Then there is no overlap: all its secrets end now, and applications wait for the new one.
      </p>
      <div>
        <Button look="danger" onPress={() => setOpen(true)}>
          End all secrets now...
        </Button>
      </div>
      {isOpen && <LeakedDialog {...props} onClose={() => setOpen(false)} />}
    </section>
  );
}

function LeakedDialog({
  view,
  onCreated,
  onClose,
}: LeakedKeyProps & { readonly onClose: () => void }) {
  const calls = useList("/usage/calls", { key_id: view.id, since: "24h", limit: 20 });
  const { run, isRunning, failure } = useChange("POST /keys/{id}/rotate");
  const replace = async (): Promise<void> => {
    const answer = await run({ compromised: true }, { id: view.id });
    if (!answer.ok) return;
    onClose();
    onCreated(answer.value);
  };
  return (
    <Dialog title="End all secrets now" isFull isAlert onClose={onClose}>
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
      <Form
        submit="End all secrets and create one"
        isDanger
        isRunning={isRunning}
        failure={failure}
        onSubmit={replace}
        onCancel={onClose}
      >
        {null}
      </Form>
    </Dialog>
  );
}

const columns: readonly Column<CallRow>[] = [
  { title: "Time", cell: ({ started_at: at }) => <Time at={at} /> },
  { title: "Model", cell: ({ model }) => model },
  {
    title: "Tokens",
    cell: (call) => exactText(call.input_tokens + call.output_tokens),
    isNumber: true,
  },
  { title: "Status", cell: ({ status, code }) => `${status} ${code ?? ""}`, isWideOnly: true },
];
