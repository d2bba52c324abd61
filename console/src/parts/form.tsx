import { type FormEvent, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { Form as AriaForm } from "react-aria-components";
import type { Choices } from "../api/contract.ts";
import type { Changes, Parameters } from "../api/endpoints.ts";
import type { ApiFailure } from "../api/failure.ts";
import { useChange } from "../api/use-change.ts";
import { useChoices } from "../api/use-read.ts";
import { Button } from "./button.tsx";
import { Dialog, useClose } from "./dialog.tsx";
import { ErrorNote } from "./error-note.tsx";
import { Loaded } from "./page.tsx";

export interface FormProps {
  readonly children: ReactNode;
  /** A verb and what it is about: "Create key". */
  readonly submit: string;
  readonly isRunning: boolean;
  /** Stands at the field that it names, else above the buttons. */
  readonly failure: ApiFailure | undefined;
  readonly onSubmit: () => unknown;
  readonly onCancel?: () => void;
  readonly isDanger?: boolean;
}

export function Form(props: FormProps) {
  const { children, submit, isRunning, failure, onSubmit, onCancel, isDanger = false } = props;
  const form = useRef<HTMLFormElement>(null);
  /** One that was typed after: its field is unmarked at once, so that no button moves at a press. */
  const [mended, setMended] = useState<ApiFailure>();
  const param = failure?.param ?? "";
  const field = /^\w+/.exec(param)?.[0] ?? "";

  useEffect(() => {
    if (failure === undefined) return;
    const named = form.current?.elements.namedItem(field);
    if (named instanceof HTMLElement) named.focus();
  }, [failure, field]);

  const send = (event: FormEvent): void => {
    event.preventDefault();
    if (!isRunning) onSubmit();
  };
  // The same object until there is another failure: a new one would mark a mended field again.
  const marked = failure === mended || field === "" ? undefined : failure;
  const errors = useMemo(
    () => (marked === undefined ? {} : { [field]: marked.message }),
    [marked, field],
  );
  return (
    <div onInput={() => setMended(failure)}>
      <AriaForm ref={form} className="form stack" onSubmit={send} validationErrors={errors}>
        {children}
        {failure !== undefined && <ErrorNote failure={failure} />}
        <div className="row">
          <Button type="submit" look={isDanger ? "danger" : "primary"} isBusy={isRunning}>
            {submit}
          </Button>
          {onCancel !== undefined && (
            <Button onPress={onCancel} autoFocus={isDanger}>
              Cancel
            </Button>
          )}
        </div>
      </AriaForm>
    </div>
  );
}

/** A form above the page; one that destroys something asks as an alert. */
export function FormDialog({
  title,
  ...form
}: Omit<FormProps, "onCancel"> & { readonly title: string }) {
  const close = useClose();
  return (
    <Dialog title={title} isAlert={form.isDanger === true}>
      <Form {...form} onCancel={close} />
    </Dialog>
  );
}

interface ChangeProps<Name extends keyof Changes> {
  readonly title: string;
  readonly submit: string;
  readonly change: Name;
  readonly body: Changes[Name]["body"];
  readonly parameters?: Parameters;
  readonly isDanger?: boolean;
  readonly children?: ReactNode;
  readonly onDone?: ((answer: Changes[Name]["answer"]) => void) | undefined;
}

/** A form above the page that makes one change, and closes when it is made. */
export function ChangeDialog<Name extends keyof Changes>(props: ChangeProps<Name>) {
  const { change: name, body, parameters, onDone, children, ...form } = props;
  const change = useChange(name);
  const close = useClose();
  const submit = async (): Promise<void> => {
    const answer = await change.run(body, parameters);
    if (!answer.ok) return;
    close();
    onDone?.(answer.value);
  };
  return (
    <FormDialog {...form} {...change} onSubmit={submit}>
      {children}
    </FormDialog>
  );
}

/** The texts of a form. `bind` makes the properties of the field of that name. */
export function useDraft<Draft extends Texts<Draft>>(initial: Draft) {
  const [draft, setDraft] = useState(initial);
  const set = (changed: Partial<Draft>): void => setDraft({ ...draft, ...changed });
  return { draft, set, bind: binderOf(draft, set) };
}

type Texts<Draft> = { readonly [Name in keyof Draft]: string };

export type Bind<Draft> = (name: keyof Draft & string) => {
  readonly name: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
};

export function binderOf<Draft extends Texts<Draft>>(
  draft: Draft,
  set: (changed: Partial<NoInfer<Draft>>) => void,
): Bind<Draft> {
  return (name) => ({
    name,
    value: draft[name],
    // The name is one of the draft's.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    onChange: (value) => set({ [name]: value } as unknown as Partial<Draft>),
  });
}

/** What a form chooses from; a dialog waits for it, or says why it is not there. */
export function Offered<Name extends keyof Choices>({
  title,
  of,
  scope,
  children,
}: {
  readonly title: string;
  readonly of: readonly Name[];
  readonly scope?: Parameters;
  readonly children: (choices: Pick<Choices, Name>) => ReactNode;
}) {
  const choices = useChoices(of, scope);
  if (choices.data !== undefined) return children(choices.data);
  return (
    <Dialog title={title}>
      <Loaded query={choices}>{() => null}</Loaded>
    </Dialog>
  );
}
