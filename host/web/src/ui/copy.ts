export { copyText } from '../commands/copy';
