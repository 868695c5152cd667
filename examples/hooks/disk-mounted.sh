#!/bin/sh
# A hook: fails unless a folder is the mount point of a file system.
mountpoint --quiet "$1" || { echo "$1 is not mounted"; exit 1; }
echo "$1 is mounted"
