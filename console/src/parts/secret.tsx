import "./secret.css";
import { useEffect, useRef, useState } from "react";
import { Button } from "./button.tsx";
import { Copy } from "./copy.tsx";
import { Closing, Dialog } from "./dialog.tsx";
import { Note } from "./error-note.tsx";
import { Snippets } from "./snippets.tsx";

const shownMs = 600_000;

/**
 * A secret that is shown once. It is only in the memory of the caller, and leaves the page by "I
 * have stored it"; every other way asks first.
 */
export function Secret({
  title,
  secret,
  what,
  advice = "Store it where your application reads it.",
  environment,
  onStored,
}: {
  readonly title: string;
  readonly secret: string;
  /** "API key", "token". */
  readonly what: string;
  /** What to do with it. */
  readonly advice?: string;
  /** Of an API key: snippets for its environment are shown. */
  readonly environment?: string;
  readonly onStored: () => void;
}) {
  const field = useRef<HTMLDivElement>(null);
  const [isMasked, setMasked] = useState(false);
  const [isAsking, setAsking] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setMasked(true), shownMs);
    return () => clearTimeout(timer);
  }, []);
  useStayHere(() => setAsking(true));
  return (
    <Closing value={() => setAsking(true)}>
      <Dialog title={title} isFull>
        <p>
          This is the only time that the {what} is shown. {advice}
        </p>
        <div className="row">
          <div
            ref={field}
            className="secret mono"
            role="textbox"
            aria-readonly="true"
            aria-label={what}
            tabIndex={0}
            onFocus={() => selectAll(field.current)}
          >
            {isMasked ? "•".repeat(24) : secret}
          </div>
          <Copy text={secret} what={what} field={field} look="primary" label="Copy" />
        </div>
        {isMasked && <Button onPress={() => setMasked(false)}>Show it again</Button>}
        {environment !== undefined && <Snippets environment={environment} secret={secret} />}
        {isAsking && <Note tone="warn">It cannot be shown again. Have you stored it?</Note>}
        <div className="row">
          <Button look={isAsking ? "danger" : "plain"} onPress={onStored}>
            I have stored it
          </Button>
        </div>
      </Dialog>
    </Closing>
  );
}

function selectAll(element: HTMLElement | null): void {
  if (element !== null) window.getSelection()?.selectAllChildren(element);
}

/** Asks before the window closes, and takes "back" as a wish to leave. */
function useStayHere(onLeave: () => void): void {
  const leave = useRef(onLeave);
  leave.current = onLeave;
  useEffect(() => {
    const keep = (event: BeforeUnloadEvent): void => event.preventDefault();
    const stay = (): void => {
      window.history.pushState(null, "");
      leave.current();
    };
    window.history.pushState(null, "");
    window.addEventListener("beforeunload", keep);
    window.addEventListener("popstate", stay);
    return () => {
      window.removeEventListener("beforeunload", keep);
      window.removeEventListener("popstate", stay);
      window.history.back();
    };
  }, []);
}
