import { useState } from "react";
import { signedIn } from "../../api/session.ts";
import { useChange } from "../../api/use-change.ts";
import { Note } from "../../parts/error-note.tsx";
import { Field } from "../../parts/field.tsx";
import { Form, useDraft } from "../../parts/form.tsx";
import { NewPassword } from "../../parts/new-password.tsx";
import { useUser } from "../../shell/role.ts";

const empty = { current_password: "", new_password: "" };

export function OwnPassword() {
  const { draft, set, bind } = useDraft(empty);
  const [isDone, setDone] = useState(false);
  const change = useChange("POST /session/password");
  const user = useUser();
  const save = async (): Promise<void> => {
    const answer = await change.run(draft);
    setDone(answer.ok);
    if (!answer.ok) return;
    set(empty);
    signedIn(answer.value, true);
  };
  if (user?.has_password === false) {
    return <p>You have no password here: you use single sign-on. Change it at its provider.</p>;
  }
  return (
    <>
      {isDone && <Note tone="ok">Your password is changed. Your other sessions have ended.</Note>}
      <Form submit="Change password" {...change} onSubmit={save}>
        <Field
          {...bind("current_password")}
          label="Current password"
          type="password"
          autoComplete="current-password"
          isRequired
        />
        <NewPassword {...bind("new_password")} />
        <p className="muted small">It ends all your other sessions. Your tokens stay valid.</p>
      </Form>
    </>
  );
}
