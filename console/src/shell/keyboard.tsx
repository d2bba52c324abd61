import { useEffect, useState } from "react";
import { useLocation } from "wouter";
import { type PageEntry, usePages } from "../pages.tsx";
import { Button } from "../parts/button.tsx";
import { Closing, Dialog, useClose } from "../parts/dialog.tsx";
import { type Fact, Facts } from "../parts/facts.tsx";

const sequenceMs = 1_000;

/** Listens for keys outside of fields, and shows them all after `?`. */
export function Keyboard() {
  const [isHelp, setHelp] = useState(false);
  const entries = usePages();
  const [, navigate] = useLocation();
  useEffect(() => {
    /** When `g` was pressed; long ago at first, also on a page that was loaded just now. */
    let wentAt = Number.NEGATIVE_INFINITY;
    const press = (event: KeyboardEvent): void => {
      if (isTyping(event)) return;
      const isSecond = performance.now() - wentAt < sequenceMs;
      wentAt = Number.NEGATIVE_INFINITY;
      const target = entries.find(({ link }) => link?.key === event.key);
      if (isSecond && target !== undefined) navigate(target.path);
      else if (event.key === "g") wentAt = performance.now();
      else if (event.key === "?") setHelp(true);
      else if (event.key === "/") {
        event.preventDefault();
        document.getElementById("search")?.focus();
      }
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [entries, navigate]);
  if (!isHelp) return null;
  return (
    <Closing value={() => setHelp(false)}>
      <Help entries={entries} />
    </Closing>
  );
}

function isTyping({ target, ctrlKey, metaKey, altKey }: KeyboardEvent): boolean {
  if (ctrlKey || metaKey || altKey) return true;
  const fields = "input, select, textarea, [role=textbox], [role=dialog] *, [role=alertdialog] *";
  return target instanceof Element && target.closest(fields) !== null;
}

function Help({ entries }: { readonly entries: readonly PageEntry[] }) {
  const close = useClose();
  return (
    <Dialog title="Keys">
      <Facts
        facts={[
          ["Find an id", <kbd key="find">/</kbd>],
          ["This help", <kbd key="help">?</kbd>],
          ...entries.flatMap(({ link }): Fact[] => (link ? [[link.name, keysOf(link.key)]] : [])),
        ]}
      />
      <Button onPress={close} autoFocus>
        Close
      </Button>
    </Dialog>
  );
}

function keysOf(letter: string) {
  return (
    <>
      <kbd>g</kbd> <kbd>{letter}</kbd>
    </>
  );
}
