"""What Ceph's commands print, as text and as documents."""
