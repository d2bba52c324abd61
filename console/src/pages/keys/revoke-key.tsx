import { useState } from "react";
import type { Applied, KeyView } from "../../api/contract.ts";
import { useChange } from "../../api/use-change.ts";
import { useCache, useRead } from "../../api/use-read.ts";
import { Dialog } from "../../parts/dialog.tsx";
import { Field } from "../../parts/field.tsx";
import { Form } from "../../parts/form.tsx";
import { exactText } from "../../parts/numbers.tsx";
import { Loaded } from "../../parts/page.tsx";
import { Time } from "../../parts/time.tsx";
import { keyName, lastUse } from "./key-words.tsx";

/** Asks before a key ends for good: more, if it is in use. */
export function RevokeKey({
  view,
  onClose,
  onRevoked,
}: {
  readonly view: KeyView;
  readonly onClose: () => void;
  readonly onRevoked: (applied: Applied | undefined) => void;
}) {
  const lastHour = useRead("/usage/totals", { key_id: view.id, since: "1h" });
  const [typed, setTyped] = useState("");
  const [isWrong, setWrong] = useState(false);
  const cache = useCache();
  const { run, isRunning, failure } = useChange("DELETE /keys/{id}");
  const name = keyName(view);
  const calls = lastHour.data?.data[0]?.calls ?? 0;
  const mustType = calls > 0;
  const revoke = async (): Promise<void> => {
    if (mustType && typed.trim() !== name) return setWrong(true);
    const answer = await run(undefined, { id: view.id });
    if (!answer.ok) return;
    cache.writeKey(answer.value);
    onRevoked(answer.value.applied);
  };
  return (
    <Dialog title={`Revoke ${name}`} isAlert onClose={onClose}>
      <Loaded query={lastHour}>
        {() => (
          <>
            <p>
              The key of application {view.application} in {view.environment} ends for good, and its
              running calls end. In the last hour it made {exactText(calls)} calls; it was last used{" "}
              <Time at={lastUse(view)} isRelative />. Its usage and its audit stay.
            </p>
            <Form
              submit="Revoke key"
              isDanger
              isRunning={isRunning}
              failure={failure}
              onSubmit={revoke}
              onCancel={onClose}
            >
              {mustType && (
                <Field
                  label={`It is in use. Type its name, ${name}`}
                  isRequired
                  value={typed}
                  onChange={setTyped}
                />
              )}
              {isWrong && typed.trim() !== name && (
                <p className="note bad" role="alert">
                  This is not its name. Nothing was revoked: type {name}.
                </p>
              )}
            </Form>
          </>
        )}
      </Loaded>
    </Dialog>
  );
}
