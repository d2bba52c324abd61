import { useState } from "react";
import type { Applied, KeyView } from "../../api/contract.ts";
import { useChange } from "../../api/use-change.ts";
import { useRead } from "../../api/use-read.ts";
import { Dialog, useClose } from "../../parts/dialog.tsx";
import { Note } from "../../parts/error-note.tsx";
import { Field } from "../../parts/field.tsx";
import { Form } from "../../parts/form.tsx";
import { exactText } from "../../parts/numbers.tsx";
import { Loaded } from "../../parts/page.tsx";
import { Time } from "../../parts/time.tsx";
import { keyName, lastUse } from "./key-words.tsx";

/** Asks before a key ends for good: more, if it is in use. */
export function RevokeKey({
  view,
  onRevoked,
}: {
  readonly view: KeyView;
  readonly onRevoked: (applied: Applied | undefined) => void;
}) {
  const close = useClose();
  const lastHour = useRead("/usage/totals", { key_id: view.id, since: "1h" });
  const [typed, setTyped] = useState("");
  const [isWrong, setWrong] = useState(false);
  const change = useChange("DELETE /keys/{id}");
  const name = keyName(view);
  const calls = lastHour.data?.data[0]?.calls ?? 0;
  const mustType = calls > 0;
  const revoke = async (): Promise<void> => {
    if (mustType && typed.trim() !== name) return setWrong(true);
    const answer = await change.run(undefined, { id: view.id });
    if (answer.ok) onRevoked(answer.value.applied);
  };
  return (
    <Dialog title={`Revoke ${name}`} isAlert>
      <Loaded query={lastHour}>
        {() => (
          <>
            <p>
              The key of application {view.application} in {view.environment} ends for good, and its
              running calls end. In the last hour it made {exactText(calls)} calls; it was last used{" "}
              <Time at={lastUse(view)} isRelative />. Its usage and its audit stay.
            </p>
            <Form submit="Revoke key" isDanger {...change} onSubmit={revoke} onCancel={close}>
              {mustType && (
                <Field
                  label={`It is in use. Type its name, ${name}`}
                  isRequired
                  value={typed}
                  onChange={setTyped}
                />
              )}
              {isWrong && typed.trim() !== name && (
                <Note tone="bad">This is not its name. Nothing was revoked: type {name}.</Note>
              )}
            </Form>
          </>
        )}
      </Loaded>
    </Dialog>
  );
}
