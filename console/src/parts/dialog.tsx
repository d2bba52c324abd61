import "./dialog.css";
import { createContext, type ReactNode, useContext, useState } from "react";
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from "react-aria-components";
import { Button, type Look } from "./button.tsx";

const Close = createContext<() => void>(() => undefined);
/** Says what closes the dialogs in it. */
export const Closing = Close.Provider;

/** Closes the dialog that the component is in. */
export function useClose(): () => void {
  return useContext(Close);
}

/**
 * A question above the page. It is in the page only while it is open, so that its state ends with
 * it. `isFull`: fills the window, for what must not be overlooked.
 */
export function Dialog({
  title,
  children,
  isFull = false,
  isAlert = false,
}: {
  readonly title: string;
  readonly children: ReactNode;
  readonly isFull?: boolean;
  readonly isAlert?: boolean;
}) {
  // By Esc, or by a press outside.
  const close = useClose();
  return (
    <ModalOverlay
      isOpen
      isDismissable
      className="overlay"
      onOpenChange={(isOpen) => isOpen || close()}
    >
      <Modal className={isFull ? "modal full" : "modal"}>
        <AriaDialog className="dialog stack" role={isAlert ? "alertdialog" : "dialog"}>
          <Heading slot="title" level={2}>
            {title}
          </Heading>
          {children}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}

/** A button that opens a dialog: its children. */
export function Ask({
  text,
  label = text,
  look = "plain",
  children,
}: {
  readonly text: string;
  /** For screen readers, where the text alone does not say what it is about. */
  readonly label?: string;
  readonly look?: Look;
  readonly children: ReactNode;
}) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button look={look} aria-label={label} onPress={() => setOpen(true)}>
        {text}
      </Button>
      {isOpen && <Closing value={() => setOpen(false)}>{children}</Closing>}
    </>
  );
}
