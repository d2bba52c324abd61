import { useState } from "react";
import { signedIn } from "../../api/session.ts";
import { useChange } from "../../api/use-change.ts";
import { Note } from "../../parts/error-note.tsx";
import { Field } from "../../parts/field.tsx";
import { Form } from "../../parts/form.tsx";
import { NewPassword } from "../../parts/new-password.tsx";
import { useUser } from "../../shell/role.ts";

const empty = { current: "", next: "" };

export function OwnPassword() {
  const [typed, setTyped] = useState(empty);
  const [isDone, setDone] = useState(false);
  const { run, isRunning, failure } = useChange("POST /session/password");
  const user = useUser();
  const save = async (): Promise<void> => {
    const body = { current_password: typed.current, new_password: typed.next };
    const answer = await run(body);
    setDone(answer.ok);
    if (!answer.ok) return;
    setTyped(empty);
    signedIn(answer.value, true);
  };
  if (user?.has_password === false) {
    return <p>You have no password here: you use single sign-on. Change it at its provider.</p>;
  }
  return (
    <>
      {isDone && (
        <Note tone="ok">
          <p>Your password is changed. Your other sessions have ended.</p>
        </Note>
      )}
      <Form submit="Change password" isRunning={isRunning} failure={failure} onSubmit={save}>
        <Field
          label="Current password"
          name="current_password"
          type="password"
          autoComplete="current-password"
          isRequired
          value={typed.current}
          onChange={(current) => setTyped({ ...typed, current })}
        />
        <NewPassword
          name="new_password"
          value={typed.next}
          onChange={(next) => setTyped({ ...typed, next })}
        />
        <p className="muted small">It ends all your other sessions. Your tokens stay valid.</p>
      </Form>
    </>
  );
}
