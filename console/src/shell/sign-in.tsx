import "./sign-in.css";
import { useState } from "react";
import { signedIn } from "../api/session.ts";
import { useChange } from "../api/use-change.ts";
import { useRead } from "../api/use-read.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Field } from "../parts/field.tsx";
import { Form } from "../parts/form.tsx";
import { NewPassword } from "../parts/new-password.tsx";
import { Loaded, Page } from "../parts/page.tsx";

const singleSignOnPath = "/admin/v1/sso/start";

/** The whole page of somebody who is not signed in. */
export function SignInPage() {
  const ways = useRead("/sign-in");
  const isNew = ways.data?.needs_bootstrap === true;
  return (
    <main className="sign-in">
      <Page title={isNew ? "Create the first operator" : "Sign in to Sluice"}>
        <Loaded query={ways}>
          {(options) =>
            options.needs_bootstrap ? (
              <FirstOperator />
            ) : (
              <>
                {options.password && <PasswordForm />}
                {options.single_sign_on && (
                  <a className="button plain" href={singleSignOnPath}>
                    Use single sign-on
                  </a>
                )}
              </>
            )
          }
        </Loaded>
      </Page>
    </main>
  );
}

/** Above the page of a user whose session has ended. Nothing below it is lost. */
export function SignInOverlay({ email }: { readonly email: string }) {
  const ways = useRead("/sign-in");
  return (
    <Dialog title="Your session has ended" onClose={() => undefined}>
      <p>Sign in again to go on; what you have typed is still there.</p>
      {ways.data?.password !== false && <PasswordForm initialEmail={email} />}
      {ways.data?.single_sign_on === true && (
        <>
          <a className="button plain" href={singleSignOnPath} target="_blank" rel="noreferrer">
            Use single sign-on in a new tab
          </a>
          <p className="muted small">This page goes on by itself when the other has signed in.</p>
        </>
      )}
    </Dialog>
  );
}

function PasswordForm({ initialEmail = "" }: { readonly initialEmail?: string }) {
  const [email, setEmail] = useState(initialEmail);
  const [password, setPassword] = useState("");
  const { run, isRunning, failure } = useChange("POST /session");
  const submit = async (): Promise<void> => {
    const answer = await run({ email, password });
    if (answer.ok) signedIn(answer.value, true);
    else setPassword("");
  };
  return (
    <Form submit="Sign in" isRunning={isRunning} failure={failure} onSubmit={submit}>
      <Field
        label="Email address"
        name="email"
        type="email"
        autoComplete="username"
        isRequired
        hasFocus={initialEmail === ""}
        value={email}
        onChange={setEmail}
      />
      <Field
        label="Password"
        name="password"
        type="password"
        autoComplete="current-password"
        isRequired
        hasFocus={initialEmail !== ""}
        value={password}
        onChange={setPassword}
      />
    </Form>
  );
}

function FirstOperator() {
  const [token, setToken] = useState("");
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const { run, isRunning, failure } = useChange("POST /bootstrap");
  const submit = async (): Promise<void> => {
    const answer = await run({ token: token.trim(), email, password });
    if (answer.ok) signedIn(answer.value, true);
  };
  return (
    <>
      <p>Nobody can sign in yet. The first start of the gateway printed a one-time token.</p>
      <Form submit="Create operator" isRunning={isRunning} failure={failure} onSubmit={submit}>
        <Field
          label="One-time token"
          name="token"
          isMono
          isRequired
          hasFocus
          value={token}
          onChange={setToken}
          hint="It is valid for an hour. Restart the gateway for another."
        />
        <Field
          label="Email address"
          name="email"
          type="email"
          autoComplete="username"
          isRequired
          value={email}
          onChange={setEmail}
        />
        <NewPassword label="Password" name="password" value={password} onChange={setPassword} />
      </Form>
    </>
  );
}
