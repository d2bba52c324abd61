import { useState } from "react";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { Select } from "./field.tsx";

type Texts<Name extends string> = Readonly<Record<Name, string>>;

/** Somebody else has changed the same thing: for each field that differs, whose version stays. */
export function Conflict<Name extends string>({
  labels,
  mine,
  base,
  theirs,
  onMerged,
  onClose,
}: {
  readonly labels: Texts<Name>;
  readonly mine: Texts<Name>;
  /** What both began with. */
  readonly base: Texts<Name>;
  readonly theirs: Texts<Name>;
  readonly onMerged: (merged: Texts<Name>) => void;
  readonly onClose: () => void;
}) {
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
