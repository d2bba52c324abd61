import "./sign-in.css";
import { type ReactNode, useState } from "react";
import { signedIn } from "../api/session.ts";
import { useChange } from "../api/use-change.ts";
import { useRead } from "../api/use-read.ts";
import { Button } from "../parts/button.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Field } from "../parts/field.tsx";
import { Form, useDraft } from "../parts/form.tsx";
import { NewPassword } from "../parts/new-password.tsx";
import { Loaded, Page } from "../parts/page.tsx";

const singleSignOnPath = "/admin/v1/sso/start";

/** The whole page of somebody who is not signed in. */
export function SignInPage() {
  const ways = useRead("/sign-in");
  const [hasAccount, setHasAccount] = useState(false);
  const isNew = ways.data?.needs_bootstrap === true && !hasAccount;
  return (
    <main className="sign-in">
      <Page title={isNew ? "Create the first operator" : "Sign in to Sluice"}>
        <Loaded query={ways}>
          {(options) =>
            isNew ? (
              <FirstOperator>
                <Button look="quiet" onPress={() => setHasAccount(true)}>
                  Sign in instead
                </Button>
              </FirstOperator>
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
    <Dialog title="Your session has ended">
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

const emailField = {
  label: "Email address",
  type: "email",
  autoComplete: "username",
  isRequired: true,
} as const;

function PasswordForm({ initialEmail = "" }: { readonly initialEmail?: string }) {
  const { draft, set, bind } = useDraft({ email: initialEmail, password: "" });
  const change = useChange("POST /session");
  const submit = async (): Promise<void> => {
    const answer = await change.run(draft);
    if (answer.ok) signedIn(answer.value, true);
    else set({ password: "" });
  };
  return (
    <Form submit="Sign in" {...change} onSubmit={submit}>
      <Field {...emailField} {...bind("email")} hasFocus={initialEmail === ""} />
      <Field
        {...bind("password")}
        label="Password"
        type="password"
        autoComplete="current-password"
        isRequired
        hasFocus={initialEmail !== ""}
      />
    </Form>
  );
}

function FirstOperator({ children }: { readonly children: ReactNode }) {
  const { draft, bind } = useDraft({ token: "", email: "", password: "" });
  const change = useChange("POST /bootstrap");
  const submit = async (): Promise<void> => {
    const answer = await change.run({ ...draft, token: draft.token.trim() });
    if (answer.ok) signedIn(answer.value, true);
  };
  return (
    <>
      <p>There is no operator yet. The first start of the gateway printed a one-time token.</p>
      <Form submit="Create operator" {...change} onSubmit={submit}>
        <Field
          {...bind("token")}
          label="One-time token"
          isMono
          isRequired
          hasFocus
          hint="It is valid for an hour. Restart the gateway for another."
        />
        <Field {...emailField} {...bind("email")} />
        <NewPassword {...bind("password")} label="Password" />
      </Form>
      {children}
    </>
  );
}
