import { type ReactNode, useState } from "react";
import type { Answer, ApiFailure } from "../api/failure.ts";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { Select } from "./field.tsx";
import { Form } from "./form.tsx";

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
  /** A newer version is known: the own one, or that of somebody else. */
  readonly onRead: (view: View) => void;
  readonly onClose: () => void;
  readonly children: (
    draft: Texts<Name>,
    set: (changed: Partial<Texts<Name>>) => void,
  ) => ReactNode;
  /** Below the form. */
  readonly more?: ReactNode;
}

/** Changes a thing. If somebody else has meanwhile, it shows both versions and loses nothing. */
export function EditDialog<Name extends string, View extends { readonly revision: number }, Body>(
  props: EditProps<Name, View, Body>,
) {
  const { title, labels, draftOf, bodyOf, change, id, read, onRead, onClose, children } = props;
  const [base, setBase] = useState(props.view);
  const [theirs, setTheirs] = useState<View>();
  const [draft, setDraft] = useState(() => draftOf(base));
  const save = async (): Promise<void> => {
    const body = { ...bodyOf(draft, draftOf(base)), revision: base.revision };
    const answer = await change.run(body, { id });
    if (!answer.ok && answer.failure.code !== "revision_conflict") return;
    const newer = answer.ok ? answer : await read();
    if (!newer.ok) return;
    onRead(newer.value);
    if (answer.ok) onClose();
    else setTheirs(newer.value);
  };
  if (theirs !== undefined) {
    return (
      <Conflict
        labels={labels}
        mine={draft}
        base={draftOf(base)}
        theirs={draftOf(theirs)}
        onClose={onClose}
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
    <Dialog title={title} onClose={onClose}>
      <Form submit="Save changes" {...change} onSubmit={save} onCancel={onClose}>
        {children(draft, (changed) => setDraft({ ...draft, ...changed }))}
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
  readonly onClose: () => void;
}

/** For each field that differs, whose version stays. */
function Conflict<Name extends string>(props: ConflictProps<Name>) {
  const { labels, mine, base, theirs, onMerged, onClose } = props;
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
    <Dialog title="Somebody else has changed it" onClose={onClose}>
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
        <Button onPress={onClose}>Discard mine</Button>
      </div>
    </Dialog>
  );
}
