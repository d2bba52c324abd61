import "./sign-in.css";
import { useCallback, useEffect, useState } from "react";
import { loadSession } from "../api/client.ts";
import type { OneTimeLink } from "../api/link.ts";
import { signedIn } from "../api/session.ts";
import { useChange } from "../api/use-change.ts";
import { Button } from "../parts/button.tsx";
import { ErrorNote, Note } from "../parts/error-note.tsx";
import { Form } from "../parts/form.tsx";
import { NewPassword } from "../parts/new-password.tsx";
import { Page, Skeleton } from "../parts/page.tsx";

/** Where a link leads that signs in once. */
export function LinkPage({ purpose, token }: OneTimeLink) {
  const { run, isRunning, failure } = useChange("POST /session/link");
  const [password, setPassword] = useState("");
  const isUsed = failure?.code === "wrong_credentials";
  const signIn = useCallback(
    async (chosen?: string): Promise<void> => {
      const answer = await run({ token, ...(chosen !== undefined && { password: chosen }) });
      if (answer.ok) signedIn(answer.value, true);
    },
    [run, token],
  );
  useEffect(() => {
    if (purpose === "sign-in") void signIn();
  }, [purpose, signIn]);
  return (
    <main className="sign-in">
      <Page title={isUsed ? "This link does not sign in" : titles[purpose]}>
        {purpose === "new-password" && !isUsed && (
          <>
            <p>
              An operator has made this link for you, to the console of Sluice, the gateway to AI
              models. It signs you in once, and then shows your account. From then on, you sign in
              with your email address and this password.
            </p>
            <Form
              submit="Set password and sign in"
              isRunning={isRunning}
              failure={failure}
              onSubmit={() => signIn(password)}
            >
              <NewPassword name="password" hasFocus value={password} onChange={setPassword} />
            </Form>
          </>
        )}
        {purpose === "sign-in" && failure === undefined && <Skeleton rows={2} />}
        {failure !== undefined && (isUsed || purpose === "sign-in") && (
          <>
            {isUsed ? (
              <Note tone="warn">{advice[purpose]}</Note>
            ) : (
              <ErrorNote failure={failure} onRetry={() => signIn()} />
            )}
            <Button look="primary" onPress={loadSession}>
              Go to the console
            </Button>
          </>
        )}
      </Page>
    </main>
  );
}

const titles = {
  "sign-in": "Signing in...",
  "new-password": "Choose your password for Sluice",
} as const;

const advice = {
  "sign-in":
    "The link that the demo prints works once, within 10 minutes, in a browser on the gateway's " +
    "machine. If you used it in this browser, you are signed in already. Restart the demo for another.",
  "new-password":
    "It works once, until its time is over or another is made. If you have set a password with it, " +
    "sign in with that; else ask an operator for another link.",
} as const;
