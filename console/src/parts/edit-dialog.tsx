import { type ReactNode, useState } from "react";
import { read } from "../api/client.ts";
import type { Changes, Reads } from "../api/endpoints.ts";
import { useChange } from "../api/use-change.ts";
import { Button } from "./button.tsx";
import { Dialog, useClose } from "./dialog.tsx";
import { Select } from "./field.tsx";
import { type Bind, binderOf, Form } from "./form.tsx";

type Texts<Name extends string> = Readonly<Record<Name, string>>;

type Editable = "/accounts/{id}" | "/budgets/{id}" | "/keys/{id}" | "/users/{id}";
type Body<Path extends Editable> = Changes[`PATCH ${Path}`]["body"];

interface EditProps<Path extends Editable, Name extends string> {
  readonly title: string;
  readonly path: Path;
  readonly labels: Texts<Name>;
  readonly view: Reads[Path];
  readonly draftOf: (view: Reads[Path]) => Texts<Name>;
  /** What is sent, beside the revision. */
  readonly bodyOf: (draft: Texts<Name>, before: Texts<Name>) => Omit<Body<Path>, "revision">;
  readonly children: (
    draft: Texts<Name>,
    set: (changed: Partial<Texts<Name>>) => void,
    bind: Bind<Texts<Name>>,
  ) => ReactNode;
  /** Below the form. */
  readonly more?: ReactNode;
}

/** Changes a thing. If somebody else has meanwhile, it shows both versions and loses nothing. */
export function EditDialog<Path extends Editable, Name extends string>(
  props: EditProps<Path, Name>,
) {
  const { title, path, labels, draftOf, bodyOf, children } = props;
  const { id } = props.view;
  const close = useClose();
  const change = useChange(`PATCH ${path}` as const);
  const [base, setBase] = useState(props.view);
  const [theirs, setTheirs] = useState<Reads[Path]>();
  const [draft, setDraft] = useState(() => draftOf(base));
  const set = (changed: Partial<Texts<Name>>): void => setDraft({ ...draft, ...changed });
  const save = async (): Promise<void> => {
    // It has all of the body's fields.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const body = { ...bodyOf(draft, draftOf(base)), revision: base.revision } as Body<Path>;
    const answer = await change.run(body, { id });
    if (!answer.ok && answer.failure.code !== "revision_conflict") return;
    if (answer.ok) return close();
    const newer = await read(path, { id });
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
