import { type ReactNode, useState } from "react";
import type { Answer, ApiFailure } from "../api/failure.ts";
import { Button } from "./button.tsx";
import { Dialog, useClose } from "./dialog.tsx";
import { Select } from "./field.tsx";
import { type Bind, binderOf, Form } from "./form.tsx";

type Texts<Name extends string> = Readonly<Record<Name, string>>;

interface EditProps<Name extends string, View extends { readonly revision: number }, Body> {
  readonly title: string;
  readonly labels: Texts<Name>;
  readonly view: View;
  readonly draftOf: (view: View) => Texts<Name>;
  /** What is sent, beside the revision. */
  readonly bodyOf: (draft: Texts<Name>, before: Texts<Name>) => Body;
  readonly change: {
    run(body: Body & { revision: number }, parameters: { id: string }): Promise<Answer<View>>;
    readonly isRunning: boolean;
    readonly failure: ApiFailure | undefined;
    clear(): void;
  };
  readonly id: string;
  readonly read: () => Promise<Answer<View>>;
  readonly children: (
    draft: Texts<Name>,
    set: (changed: Partial<Texts<Name>>) => void,
    bind: Bind<Texts<Name>>,
  ) => ReactNode;
  /** Below the form. */
  readonly more?: ReactNode;
}

/** Changes a thing. If somebody else has meanwhile, it shows both versions and loses nothing. */
export function EditDialog<Name extends string, View extends { readonly revision: number }, Body>(
  props: EditProps<Name, View, Body>,
) {
  const { title, labels, draftOf, bodyOf, change, id, read, children } = props;
  const close = useClose();
  const [base, setBase] = useState(props.view);
  const [theirs, setTheirs] = useState<View>();
  const [draft, setDraft] = useState(() => draftOf(base));
  const set = (changed: Partial<Texts<Name>>): void => setDraft({ ...draft, ...changed });
  const save = async (): Promise<void> => {
    const body = { ...bodyOf(draft, draftOf(base)), revision: base.revision };
    const answer = await change.run(body, { id });
    if (!answer.ok && answer.failure.code !== "revision_conflict") return;
    if (answer.ok) return close();
    const newer = await read();
    if (newer.ok) setTheirs(newer.value);
  };
  if (theirs !== undefined) {
    return (
      <Conflict
        labels={labels}
        mine={draft}
        base={draftOf(base)}
        theirs={draftOf(theirs)}
        onMerged={(merged) => {
          setDraft(merged);
          setBase(theirs);
          setTheirs(undefined);
          change.clear();
        }}
      />
    );
  }
  return (
    <Dialog title={title}>
      <Form submit="Save changes" {...change} onSubmit={save} onCancel={close}>
        {children(draft, set, binderOf(draft, set))}
      </Form>
      {props.more}
    </Dialog>
  );
}

interface ConflictProps<Name extends string> {
  readonly labels: Texts<Name>;
  readonly mine: Texts<Name>;
  /** What both began with. */
  readonly base: Texts<Name>;
  readonly theirs: Texts<Name>;
  readonly onMerged: (merged: Texts<Name>) => void;
}

/** For each field that differs, whose version stays. */
function Conflict<Name extends string>(props: ConflictProps<Name>) {
  const { labels, mine, base, theirs, onMerged } = props;
  const close = useClose();
  // The names are those of the labels.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const names = Object.keys(labels) as Name[];
  const contested = names.filter((name) => mine[name] !== theirs[name]);
  const [keepsMine, setKeepsMine] = useState<Partial<Record<Name, boolean>>>({});
  const isMine = (name: Name): boolean => keepsMine[name] ?? mine[name] !== base[name];
  const merge = (): void => {
    const merged: Record<Name, string> = { ...theirs };
    for (const name of contested) if (isMine(name)) merged[name] = mine[name];
    onMerged(merged);
  };
  return (
    <Dialog title="Somebody else has changed it">
      <p>Choose what stays. Nothing is saved yet.</p>
      {contested.map((name) => (
        <Select
          key={name}
          label={labels[name]}
          value={isMine(name) ? "mine" : "theirs"}
          onChange={(value) => setKeepsMine({ ...keepsMine, [name]: value === "mine" })}
          options={[
            { value: "mine", label: `Keep mine: ${mine[name] || "(empty)"}` },
            { value: "theirs", label: `Take theirs: ${theirs[name] || "(empty)"}` },
          ]}
        />
      ))}
      <div className="row">
        <Button look="primary" onPress={merge}>
          Go on with this
        </Button>
        <Button onPress={close}>Discard mine</Button>
      </div>
    </Dialog>
  );
}
