import { type ReactNode, useEffect, useState } from "react";
import type { Applied, KeyView, RotatedKey, SecretView } from "../../api/contract.ts";
import { useLive } from "../../api/live.ts";
import { useChange } from "../../api/use-change.ts";
import { useRead } from "../../api/use-read.ts";
import { Button, ButtonLink } from "../../parts/button.tsx";
import { Ask } from "../../parts/dialog.tsx";
import { ErrorNote, Note } from "../../parts/error-note.tsx";
import { Select } from "../../parts/field.tsx";
import { Form, useDraft } from "../../parts/form.tsx";
import { Loaded, Page, type PageProps } from "../../parts/page.tsx";
import { Receipt } from "../../parts/receipt.tsx";
import { Secret } from "../../parts/secret.tsx";
import { Snippets } from "../../parts/snippets.tsx";
import { ago, spanText, Time } from "../../parts/time.tsx";
import { Steps } from "../../parts/views.tsx";
import { useUrl } from "../../url.ts";
import { EndSecret } from "./end-secret.tsx";
import { keyName } from "./key-words.tsx";
import { LeakedKey } from "./leaked-key.tsx";

const steps = ["Create the new secret", "Deploy it", "Watch the old one", "End the old one"];
const spans = [3_600, 14_400, 86_400, 259_200, 604_800];
const overlaps = spans.map((seconds) => ({ value: String(seconds), label: spanText(seconds) }));

/**
 * Replaces the secret of a key without an outage. Where the user is in it can be seen from the key
 * itself, so that it survives a reload and another day.
 */
export function RotateKeyPage({ id }: PageProps) {
  const key = useRead("/keys/{id}", { id });
  const [rotated, setRotated] = useState<RotatedKey>();
  const [isDone, setDone] = useState(false);
  const [applied, setApplied] = useState<Applied>();
  const created = (answer: RotatedKey): void => {
    setRotated(answer);
    setApplied(answer.applied);
  };
  return (
    <Page
      title={key.data === undefined ? "Rotate the key" : `Rotate ${keyName(key.data)}`}
      question="A new secret for the same key: no call fails, and limits and usage stay."
      actions={<ButtonLink to={`/keys/${id}`}>Back to the key</ButtonLink>}
    >
      <Loaded query={key}>
        {(view) => (
          <>
            <Stage
              view={view}
              isDone={isDone}
              applied={applied}
              onCreated={created}
              onDone={() => setDone(true)}
            />
            {!isDone && <LeakedKey view={view} onCreated={created} />}
          </>
        )}
      </Loaded>
      {rotated !== undefined && (
        <Secret
          title={`The new secret of ${keyName(rotated.key)}`}
          what="API key"
          secret={rotated.api_key}
          environment={rotated.key.environment}
          onStored={() => setRotated(undefined)}
        />
      )}
    </Page>
  );
}

interface StageProps {
  readonly view: KeyView;
  readonly isDone: boolean;
  readonly applied: Applied | undefined;
  readonly onCreated: (answer: RotatedKey) => void;
  readonly onDone: () => void;
}

function Stage({ view, isDone, applied, onCreated, onDone }: StageProps) {
  const live = useLive("key", view.id)?.get(view.id);
  const secrets = view.secrets
    .filter(({ status }) => status === "live")
    .map((secret) => {
      const known = live?.secrets.find(({ public_id: id }) => id === secret.public_id);
      return { ...secret, last_used_at: known?.last_used_at ?? secret.last_used_at };
    });
  const [newest, previous] = secrets;
  if (newest === undefined || previous === undefined) {
    if (!isDone) {
      return (
        <>
          <Steps steps={steps} current={0} />
          <Create view={view} onCreated={onCreated} />
        </>
      );
    }
    return (
      <>
        <Steps steps={steps} current={steps.length} />
        <Note tone="ok" more={<ButtonLink to={`/keys/${view.id}`}>Go to the key</ButtonLink>}>
          The rotation is over: only {newest?.hint} works now.
        </Note>
      </>
    );
  }
  const isUnused = newest.last_used_at === null;
  return (
    <>
      <Steps steps={steps} current={isUnused ? 1 : 2} />
      {applied !== undefined && <Receipt applied={applied} done="accept the new secret" />}
      {isUnused && <Deploy view={view} onCreated={onCreated} />}
      <Watch view={view} newest={newest} previous={previous} onDone={onDone} />
    </>
  );
}

function Card({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section className="card stack" aria-label={title}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

type CreateProps = Pick<StageProps, "view" | "onCreated">;

function Create({ view, onCreated }: CreateProps) {
  const { draft, bind } = useDraft({ overlap_seconds: "86400" });
  const change = useChange("POST /keys/{id}/rotate");
  const create = async (): Promise<void> => {
    const body = { overlap_seconds: Number(draft.overlap_seconds) };
    const answer = await change.run(body, { id: view.id });
    if (answer.ok) onCreated(answer.value);
  };
  return (
    <Card title="Create the new secret">
      <p>It works at once. The old secret goes on until the overlap is over, or you end it.</p>
      <Form submit="Create the new secret" {...change} onSubmit={create}>
        <Select
          {...bind("overlap_seconds")}
          label="How long the old secret goes on"
          options={overlaps}
        />
      </Form>
    </Card>
  );
}

function Deploy({ view, onCreated }: CreateProps) {
  const { run, isRunning, failure } = useChange("POST /keys/{id}/rotate");
  const createAgain = async (): Promise<void> => {
    const answer = await run({}, { id: view.id });
    if (answer.ok) onCreated(answer.value);
  };
  return (
    <Card title="Deploy the new secret">
      <p>
        Put it in the place of the old one wherever the application reads it, as SLUICE_KEY here.
        Both work meanwhile, and both count against the same limits.
      </p>
      <Snippets environment={view.environment} />
      <p>
        Was it lost? Nobody has used it, so another takes its place, and the old one keeps its end.
        Gateways tell each other of a use within two seconds: not right after a deployment.
      </p>
      <Button isBusy={isRunning} onPress={createAgain}>
        Create another secret
      </Button>
      {failure !== undefined && <ErrorNote failure={failure} />}
    </Card>
  );
}

interface WatchProps extends Pick<StageProps, "view" | "onDone"> {
  readonly newest: SecretView;
  readonly previous: SecretView;
}

/** Both secrets side by side, and the end of the old one. */
function Watch({ view, newest, previous, onDone }: WatchProps) {
  const [{ silence }, change] = useUrl({ silence: "86400" });
  const now = useNow();
  const usedAt = previous.last_used_at;
  const silentMs = now - new Date(usedAt ?? previous.created_at).getTime();
  const isSilent = usedAt === null || silentMs >= Number(silence) * 1_000;
  const isReady = isSilent && newest.last_used_at !== null;
  return (
    <Card title="Watch both secrets">
      <div className="grid">
        <SecretUse name="New secret" secret={newest} now={now} />
        <SecretUse name="Old secret" secret={previous} now={now} />
      </div>
      <div className="form stack">
        <Select
          label="Advise to end the old secret after a silence of"
          value={silence}
          onChange={(value) => change({ silence: value })}
          options={overlaps}
          hint="Only advice: the silence ends nothing. The old secret ends when the overlap is over, or when you end it."
        />
      </div>
      <p role="status">
        {isReady
          ? "The old secret has been silent for that long. End it now, or let the overlap end it."
          : whyNotYet(newest, usedAt, now)}
      </p>
      <Ask text="End the old secret..." look={isReady ? "primary" : "plain"}>
        <EndSecret view={view} secret={previous} lastUsedAt={usedAt} onEnded={onDone} />
      </Ask>
    </Card>
  );
}

function whyNotYet(newest: SecretView, usedAt: string | null, now: number): string {
  if (newest.last_used_at === null) return "Nobody has used the new secret yet.";
  return `The old secret was used ${ago(usedAt ?? now, now)}: somebody still sends it.`;
}

interface SecretUseProps {
  readonly name: string;
  readonly secret: SecretView;
  readonly now: number;
}

function SecretUse({ name, secret, now }: SecretUseProps) {
  const { hint, last_used_at: usedAt, expires_at: endsAt } = secret;
  return (
    <div className="stack tight">
      <h3>{name}</h3>
      <code>{hint}...</code>
      <p>Last used: {usedAt === null ? "never" : ago(usedAt, now)}</p>
      <p className="muted">
        Ends: <Time at={endsAt} none="with the key" />
      </p>
    </div>
  );
}

const tickMs = 5_000;

/** Moves on while somebody watches. */
function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), tickMs);
    return () => clearInterval(timer);
  }, []);
  return now;
}
