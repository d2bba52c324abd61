import { type FormEvent, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { Form as AriaForm } from "react-aria-components";
import type { ApiFailure } from "../api/failure.ts";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { ErrorNote } from "./error-note.tsx";

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
      <AriaForm ref={form} className="form" onSubmit={send} validationErrors={errors}>
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
  onClose,
  ...form
}: Omit<FormProps, "onCancel"> & { readonly title: string; readonly onClose: () => void }) {
  return (
    <Dialog title={title} isAlert={form.isDanger === true} onClose={onClose}>
      <Form {...form} onCancel={onClose} />
    </Dialog>
  );
}
